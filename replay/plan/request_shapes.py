"""
Request shapes: recognises similar Produce exchanges by their bytes, without decoding them.

The Produce requests of a client differ only in their records, and the responses only in offsets and
times. All other bytes of request and response are the shape of the exchange.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from dissector.protocol.apis import api
from dissector.protocol.headers import PRODUCE, is_flexible, response_header_version
from dissector.protocol.messages import Message
from dissector.protocol.spans import Span, spans

_RECORDS = "records"
_VARIABLE_FIELDS = {"base_offset": "q", "log_append_time_ms": "8x", "log_start_offset": "q"}
"""
Response fields of eight bytes that differ each time -> their `struct` codes; of times only the sign
is part of the shape.
"""

_NEGATIVE = 0x80

_BATCH = Struct(">8xi4xb6xi")
"""Fields of a batch header: length, magic, last offset delta."""

_PRODUCER = Struct(">qhii")
"""Producer id, epoch, base sequence, number of records."""

_LENGTH_END, _PRODUCER_AT, _MAGIC = 12, 43, 2
_MAX_TRIED = 8
_MAX_SHAPES = 1 << 16


class RequestShape(NamedTuple):
    """
    A Produce request without its records.

    Attributes:
        head: API key and version.
        literals: The bytes before, between and after the records, starting after the correlation
            id.
        is_compact: Whether sizes are varints.
    """

    head: bytes
    literals: tuple[bytes, ...]
    is_compact: bool

    def batch_positions(self, frame: bytes) -> list[int] | None:
        """Return the positions of the batches in a request; None if its shape is another."""
        if frame[:4] != self.head:
            return None
        try:
            return self._batch_positions(frame)
        except (IndexError, struct.error):
            return None

    def _batch_positions(self, frame: bytes) -> list[int] | None:
        found: list[int] = []
        at, *literals = 8, *self.literals
        last = literals.pop()
        for literal in literals:
            if not frame.startswith(literal, at):
                return None
            at += len(literal)
            begin, end = records_bounds(frame, at, self.is_compact)
            length, magic, delta = _BATCH.unpack_from(frame, begin)
            count = producer_at(frame, begin)[-1]
            if (length, magic, delta) != (end - begin - _LENGTH_END, _MAGIC, count - 1):
                return None
            found.append(begin)
            at = end
        return found if at + len(last) == len(frame) and frame.endswith(last) else None


class ResponseShape(NamedTuple):
    """
    A Produce response without its offsets and times.

    Attributes:
        layout: The `struct` layout of the frame.
        stride: The distance from one literal to the next, in fields of the layout.
        literals: The bytes before, between and after the offsets, starting after the correlation
            id.
        times: The position of each time, and whether it is set.
    """

    layout: Struct
    stride: int
    literals: tuple[bytes, ...]
    times: tuple[tuple[int, bool], ...] = ()

    def base_offsets(self, frame: bytes) -> tuple[int, ...] | None:
        """Return the base offsets in a response; None if its shape is another."""
        if len(frame) != self.layout.size:
            return None
        fields: tuple[Any, ...] = self.layout.unpack(frame)
        stride = self.stride
        if fields[::stride] != self.literals or (stride > 2 and min(fields[2::stride]) < 0):
            return None
        for at, is_set in self.times:
            if (frame[at] < _NEGATIVE) != is_set:
                return None
        found = fields[1::stride]
        return found if min(found) >= 0 else None


@dataclass(frozen=True, slots=True)
class Shape:
    """
    The common bytes of similar Produce exchanges.

    Attributes:
        request: The shape of the requests.
        response: The shape of the responses.
        partition_order: For each partition of the response its index in the request.
    """

    request: RequestShape
    response: ResponseShape
    partition_order: tuple[int, ...]


def shape_of(request: Message, response: Message | None) -> Shape | None:
    """Return the shape of an exchange; None unless it is a complete, successful Produce."""
    if (
        request.api_key != PRODUCE
        or request.body is None
        or response is None
        or response.body is None
    ):
        return None
    if response.api_version != request.api_version or request.faults or response.faults:
        return None
    request_shape, response_shape = (
        request_shape_of(request.frame, request.body_start),
        response_shape_of(response),
    )
    if (
        request_shape is None
        or response_shape is None
        or request_shape.batch_positions(request.frame) is None
    ):
        return None
    places = list(partitions(request.body.topic_data, "partition_data"))
    response_places = list(partitions(response.body.responses, "partition_responses"))
    if len(set(places)) != len(places) or sorted(map(str, places)) != sorted(
        map(str, response_places)
    ):
        return None
    return Shape(request_shape, response_shape, tuple(map(places.index, response_places)))


def partitions(topics: list[Any], array: str) -> Iterator[tuple[Any, int]]:
    """Yield topic name or id, and number, of each partition in a Produce request or response."""
    for topic in topics:
        for each in topic[array]:
            yield topic.get("name") or topic.get("topic_id"), each.index


def request_shape_of(frame: bytes, start: int) -> RequestShape | None:
    """
    Return the shape of a Produce request; None if it can't be decoded.

    Args:
        frame: The frame of the request.
        start: The position of its body.
    """
    found = api(PRODUCE)
    assert found is not None
    version = int.from_bytes(frame[2:4], "big")
    root = spans(found.request, version, frame, start)
    gaps = [(each.start, each.end) for each in _leaves(root) if each.name == _RECORDS]
    if root.problem or root.end != len(frame) or not gaps:
        return None
    literals = _literals_around(frame, 8, gaps)
    return RequestShape(frame[:4], literals, is_flexible(found.request, version))


def response_shape_of(response: Message) -> ResponseShape | None:
    """Return the shape of a successful Produce response; None for other responses."""
    found = api(PRODUCE)
    assert found is not None
    frame, version = response.frame, response.api_version
    assert version is not None
    start = 4 + response_header_version(PRODUCE, version)
    root = spans(found.response, version, frame, start)
    leaves = _leaves(root)
    if (
        root.problem
        or root.end != len(frame)
        or any(each.value for each in leaves if _must_be_zero(each))
    ):
        return None
    fields = [each for each in leaves if _VARIABLE_FIELDS.get(each.name) and not _is_unset(each)]
    literals = _literals_around(frame, 4, [(each.start, each.end) for each in fields])
    # Adjacent offsets have no literal between them.
    layout, nonempty, offset_count = ">4x", [], 0
    for literal, field in zip(literals, [*fields, None], strict=True):
        if literal or field is None:
            layout += f"{len(literal)}s"
            nonempty.append(literal)
        if field is not None:
            layout += _VARIABLE_FIELDS[field.name]
            offset_count += _VARIABLE_FIELDS[field.name] == "q"
    stride = offset_count // max(len(nonempty) - 1, 1) + 1
    if not offset_count or offset_count != (stride - 1) * (len(nonempty) - 1):
        return None
    times = [each for each in fields if _VARIABLE_FIELDS[each.name] == "8x"]
    are_set = ((each.start, bool(each.value >= 0)) for each in times)
    shape = ResponseShape(_struct(layout), stride, tuple(nonempty), tuple(are_set))
    return shape if shape.base_offsets(frame) is not None else None


@cache
def _struct(layout: str) -> Struct:
    """Return the same object for equal layouts, so that equal shapes compare equal."""
    return Struct(layout)


def _must_be_zero(span: Span) -> bool:
    return span.name in ("error_code", "throttle_time_ms")


def _is_unset(span: Span) -> bool:
    """Return whether a log start offset is unset, and so a constant."""
    return span.name == "log_start_offset" and bool(span.value < 0)


def _leaves(root: Span) -> list[Span]:
    return [each for each in root.leaves() if each.declared is not None]


def _literals_around(frame: bytes, start: int, gaps: list[tuple[int, int]]) -> tuple[bytes, ...]:
    """Return the bytes before, between and after gaps."""
    edges = [start, *(edge for hole in gaps for edge in hole), len(frame)]
    return tuple(frame[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


def records_bounds(frame: bytes, start: int, is_compact: bool) -> tuple[int, int]:
    """Return begin and end of the content of a `records` field at `start`."""
    if not is_compact:
        return start + 4, start + 4 + int.from_bytes(frame[start : start + 4], "big", signed=True)
    byte = frame[start]
    if byte >= 0x80 and frame[start + 1] < 0x80:
        return start + 2, start + 1 + (byte & 0x7F | frame[start + 1] << 7)
    size, begin = _varint(frame, start)
    return begin, begin + size


def producer_at(frame: bytes, begin: int) -> tuple[int, int, int, int]:
    """Return producer id, epoch, sequence and number of records of a batch."""
    return _PRODUCER.unpack_from(frame, begin + _PRODUCER_AT)


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    """Return the size in a varint that encodes size + 1, and the position after the varint."""
    byte = frame[at]
    size = byte & 0x7F
    shift = 0
    while byte & 0x80:
        at += 1
        shift += 7
        byte = frame[at]
        size |= (byte & 0x7F) << shift
    return size - 1, at + 1


class ShapeIndex:
    """
    The shapes of a capture, by number.

    Attributes:
        shapes: All shapes.
    """

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self._numbers: dict[Shape, int] = {}
        self._tried: dict[tuple[int, int], list[int]] = {}

    def begin_anew(self) -> None:
        """Give later exchanges shapes of their own, as they have other logs (`TopicLives`)."""
        self._numbers.clear()
        self._tried.clear()

    def find(
        self, connection: int, request: bytes, response: bytes
    ) -> tuple[int, list[int], tuple[int, ...]] | None:
        """
        Look up the shape of an exchange among the latest shapes of its connection.

        Returns:
            Its number, the positions of the batches in the request, and the base offsets in the
            response; None if no shape fits.
        """
        tried = self._tried.get((connection, len(response)))
        if tried is None:
            return None
        for number in reversed(tried):
            shape = self.shapes[number]
            offsets = shape.response.base_offsets(response)
            batches = shape.request.batch_positions(request) if offsets is not None else None
            if batches is not None and offsets is not None:
                return number, batches, offsets
        return None

    def add(self, connection: int, shape: Shape, response_bytes: int) -> int:
        """
        Add the shape of an exchange that `find` did not find.

        Args:
            connection: The connection of the exchange.
            shape: The shape.
            response_bytes: The size of the response.

        Returns:
            The number of the shape, -1 if there are too many.
        """
        if len(self.shapes) >= _MAX_SHAPES:
            return -1
        number = self._numbers.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
        tried = self._tried.setdefault((connection, response_bytes), [])
        tried.append(number)
        del tried[:-_MAX_TRIED]
        return number
