"""
Exchanges that are alike but for what is written in them, told by their bytes without decoding.

Clients that produce ask nearly the same over and over: only the records differ, and in the answer
the offsets. What else there is, in request and answer, is their shape.
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
_HOLES = {"base_offset": "q", "log_append_time_ms": "8x", "log_start_offset": "q"}
"""Fields of an answer that differ each time, of eight bytes each; of times counts the sign."""

_NEGATIVE = 0x80

_BATCH = Struct(">8xi4xb6xi")
"""Of a batch: length, magic, last offset delta."""

_PRODUCER = Struct(">qhii")
"""Producer id, epoch, base sequence, number of records."""

_LENGTH_END, _PRODUCER_AT, _MAGIC = 12, 43, 2
_MOST_TRIED = 8
_MOST_SHAPES = 1 << 16


class Request(NamedTuple):
    """
    A Produce request without its records.

    Attributes:
        head: API key and version.
        literals: The bytes before, between and behind its records, from behind the correlation id.
        is_compact: Whether sizes are varints.
    """

    head: bytes
    literals: tuple[bytes, ...]
    is_compact: bool

    def batches(self, frame: bytes) -> list[int] | None:
        """Return where the batches of a request of this shape begin; None if it has another."""
        if frame[:4] != self.head:
            return None
        try:
            return self._batches(frame)
        except (IndexError, struct.error):
            return None

    def _batches(self, frame: bytes) -> list[int] | None:
        found: list[int] = []
        at, *literals = 8, *self.literals
        last = literals.pop()
        for literal in literals:
            if not frame.startswith(literal, at):
                return None
            at += len(literal)
            begin, end = bounds_at(frame, at, self.is_compact)
            length, magic, delta = _BATCH.unpack_from(frame, begin)
            count = producer_at(frame, begin)[-1]
            if (length, magic, delta) != (end - begin - _LENGTH_END, _MAGIC, count - 1):
                return None
            found.append(begin)
            at = end
        return found if at + len(last) == len(frame) and frame.endswith(last) else None


class Answer(NamedTuple):
    """
    An answer to Produce without its offsets and times.

    Attributes:
        layout: Of the frame.
        stride: Every how many fields of it is a literal.
        literals: The bytes before, between and behind offsets, from behind the correlation id.
        times: Where a time stands, and whether it is set.
    """

    layout: Struct
    stride: int
    literals: tuple[bytes, ...]
    times: tuple[tuple[int, bool], ...] = ()

    def offsets(self, frame: bytes) -> tuple[int, ...] | None:
        """Return the base offsets of an answer of this shape; None where it has another."""
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
    What Produce requests and their answers have in common.

    Attributes:
        request: Of the requests.
        answer: Of the answers.
        order: For each partition of the answer, which of the request it is.
    """

    request: Request
    answer: Answer
    order: tuple[int, ...]


def shape_of(asked: Message, answered: Message | None) -> Shape | None:
    """Return the shape of an exchange; None where it has none: it is no plain, good Produce."""
    if asked.api_key != PRODUCE or asked.body is None or answered is None or answered.body is None:
        return None
    if answered.api_version != asked.api_version or asked.faults or answered.faults:
        return None
    request, answer = request_of(asked.frame, asked.body_start), answer_of(answered)
    if request is None or answer is None or request.batches(asked.frame) is None:
        return None
    places = list(partitions(asked.body.topic_data, "partition_data"))
    told = list(partitions(answered.body.responses, "partition_responses"))
    if len(set(places)) != len(places) or sorted(map(str, places)) != sorted(map(str, told)):
        return None
    return Shape(request, answer, tuple(map(places.index, told)))


def partitions(topics: list[Any], array: str) -> Iterator[tuple[Any, int]]:
    """Yield name or id of the topic and number of each partition of a Produce, either way."""
    for topic in topics:
        for each in topic[array]:
            yield topic.get("name") or topic.get("topic_id"), each.index


def request_of(frame: bytes, start: int) -> Request | None:
    """
    Return a Produce request without its records; None where it can't be read.

    Args:
        frame: Of the request.
        start: Where its body begins.
    """
    found = api(PRODUCE)
    assert found is not None
    version = int.from_bytes(frame[2:4], "big")
    root = spans(found.request, version, frame, start)
    holes = [(each.start, each.end) for each in _leaves(root) if each.name == _RECORDS]
    if root.problem or root.end != len(frame) or not holes:
        return None
    literals = _between(frame, 8, holes)
    return Request(frame[:4], literals, is_flexible(found.request, version))


def answer_of(answered: Message) -> Answer | None:
    """Return a good answer to Produce without its offsets; None where it is another."""
    found = api(PRODUCE)
    assert found is not None
    frame, version = answered.frame, answered.api_version
    assert version is not None
    start = 4 + response_header_version(PRODUCE, version)
    root = spans(found.response, version, frame, start)
    leaves = _leaves(root)
    if root.problem or root.end != len(frame) or any(each.value for each in leaves if _fails(each)):
        return None
    holes = [each for each in leaves if _HOLES.get(each.name) and not _is_unset(each)]
    literals = _between(frame, 4, [(each.start, each.end) for each in holes])
    # Where offsets follow each other there is nothing between.
    layout, kept, reads = ">4x", [], 0
    for literal, hole in zip(literals, [*holes, None], strict=True):
        if literal or hole is None:
            layout += f"{len(literal)}s"
            kept.append(literal)
        if hole is not None:
            layout += _HOLES[hole.name]
            reads += _HOLES[hole.name] == "q"
    stride = reads // max(len(kept) - 1, 1) + 1
    if not reads or reads != (stride - 1) * (len(kept) - 1):
        return None
    times = [each for each in holes if _HOLES[each.name] == "8x"]
    are_set = ((each.start, bool(each.value >= 0)) for each in times)
    answer = Answer(_struct(layout), stride, tuple(kept), tuple(are_set))
    return answer if answer.offsets(frame) is not None else None


@cache
def _struct(layout: str) -> Struct:
    """Return one object for a layout, so that equal shapes are equal."""
    return Struct(layout)


def _fails(span: Span) -> bool:
    return span.name in ("error_code", "throttle_time_ms")


def _is_unset(span: Span) -> bool:
    """Tell whether where the log starts is not told, which is the same each time."""
    return span.name == "log_start_offset" and bool(span.value < 0)


def _leaves(root: Span) -> list[Span]:
    return [each for each in root.leaves() if each.declared is not None]


def _between(frame: bytes, start: int, holes: list[tuple[int, int]]) -> tuple[bytes, ...]:
    """Return the bytes before, between and behind holes."""
    edges = [start, *(edge for hole in holes for edge in hole), len(frame)]
    return tuple(frame[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


def bounds_at(frame: bytes, start: int, is_compact: bool) -> tuple[int, int]:
    """Return where what a `records` field holds begins and ends, by where the field begins."""
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
    """Return a size that is written as one more in a varint, and where what it counts begins."""
    byte = frame[at]
    size = byte & 0x7F
    shift = 0
    while byte & 0x80:
        at += 1
        shift += 7
        byte = frame[at]
        size |= (byte & 0x7F) << shift
    return size - 1, at + 1


class Shapes:
    """
    The shapes of a capture, by number.

    Attributes:
        known: All of them.
    """

    def __init__(self) -> None:
        self.known: list[Shape] = []
        self._numbers: dict[Shape, int] = {}
        self._tried: dict[tuple[int, int], list[int]] = {}

    def find(
        self, connection: int, request: bytes, response: bytes
    ) -> tuple[int, list[int], tuple[int, ...]] | None:
        """
        Look for the shape of an exchange among the last that a connection had.

        Returns:
            Its number, where batches begin in the request, and the base offsets of the answer.
        """
        tried = self._tried.get((connection, len(response)))
        if tried is None:
            return None
        for number in reversed(tried):
            shape = self.known[number]
            offsets = shape.answer.offsets(response)
            batches = shape.request.batches(request) if offsets is not None else None
            if batches is not None and offsets is not None:
                return number, batches, offsets
        return None

    def note(self, connection: int, asked: Message, answered: Message | None) -> int:
        """Take over the shape of an exchange that was not found, and return its number; or -1."""
        shape = shape_of(asked, answered)
        if shape is None or answered is None or len(self.known) >= _MOST_SHAPES:
            return -1
        number = self._numbers.setdefault(shape, len(self.known))
        if number == len(self.known):
            self.known.append(shape)
        tried = self._tried.setdefault((connection, len(answered.frame)), [])
        tried.append(number)
        del tried[:-_MOST_TRIED]
        return number
