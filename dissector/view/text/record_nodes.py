"""The records of a batch as nodes, and where their bytes are once they are decompressed."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from dissector.errors import DecodeError
from dissector.protocol.embedded.secrecy.hidden_records import header_is_hidden
from dissector.protocol.records import LegacyBatch, LegacyRecord, Record, RecordBatch, layout
from dissector.protocol.records.compression import CODEC_MASK, decompress
from dissector.protocol.records.limits import DEFAULT, Budget
from dissector.protocol.records.message_set import header_of
from dissector.protocol.records.record_constructs import MESSAGE_BODY, RECORD, varint
from dissector.view.text.escape import hexed, quoted
from dissector.view.text.field_nodes import MASK
from dissector.view.text.tree_node import Block, LazyNodes, Place, TreeNode
from dissector.view.text.value_text import time_ms_text

AnyRecord = Record | LegacyRecord

Annotate: TypeAlias = (
    "Callable[[AnyRecord, bool, Callable[[str], Place | None]], tuple[bool, list[TreeNode]]]"
)
"""
Describes a record that Kafka itself wrote.

Given the record, whether it is in a control batch, and where its `key` and `value` are, it returns
whether the value is masked, and the nodes to show below.
"""


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """
    How records are shown.

    Attributes:
        is_secret: Whether bytes that are not read as fields are masked.
        annotate: See `Annotate`.
        are_located: Whether records have places, and their fields are nodes.
        hides_keys: Whether keys are masked as well.
    """

    is_secret: bool
    annotate: Annotate
    are_located: bool = False
    hides_keys: bool = False


def record_nodes(
    batch: RecordBatch | LegacyBatch,
    name: str,
    at: Place | None,
    head: Sequence[TreeNode],
    options: RecordOptions,
) -> Sequence[TreeNode]:
    """
    Return the nodes of a batch.

    Args:
        batch: The batch.
        name: Its name: `[0]`.
        at: Begin of the batch; None if its bytes are unknown.
        head: The nodes above the batch's records.
        options: How to show records.
    """
    control = isinstance(batch, RecordBatch) and batch.control
    located = None
    if options.are_located and at is not None:
        located = _LocatedRecords(batch, name, at, options.is_secret)
    records: Sequence[AnyRecord] = batch.records

    def make(index: int) -> TreeNode:
        return _record(index, records[index], control, located, options)

    return LazyNodes(head, len(records), make)


def _record(
    index: int,
    record: AnyRecord,
    control: bool,
    located: _LocatedRecords | None,
    options: RecordOptions,
) -> TreeNode:
    def place_of(part: str) -> Place | None:
        """Return the place of the content of key or value."""
        found = None if located is None else located.field(index, part)
        return found and Place(found.block, found.end - len(getattr(record, part)), found.end)

    time = "" if record.timestamp is None else f", {time_ms_text(record.timestamp)}"
    is_masked, nested = options.annotate(record, control, place_of)
    value = MASK if is_masked else data_text(record.value)
    key = MASK if options.hides_keys and record.key is not None else data_text(record.key)
    text = f"offset {record.offset}{time}, key {key}, value {value}"

    def load() -> list[TreeNode]:
        fields = (
            []
            if located is None
            else located.field_nodes(index, ("key",) * options.hides_keys + ("value",) * is_masked)
        )
        return [*fields, *_headers(index, record, located), *nested]

    has_nodes = bool(located is not None or record.headers or nested)
    place = None if located is None else located.record(index)
    return TreeNode(
        f"[{index}]",
        text,
        place,
        load if has_nodes else None,
        is_masked=is_masked,
        has_range=False,
        value=record,
    )


def _headers(index: int, record: AnyRecord, located: _LocatedRecords | None) -> Iterator[TreeNode]:
    for number, (key, data) in enumerate(record.headers):
        name = f"header {quoted(key)}"
        if header_is_hidden(key):
            yield TreeNode(name, MASK, None, is_masked=True)
            continue
        place = None if located is None else located.field(index, f"headers[{number}]")
        yield TreeNode(name, data_text(data), place, value=data, has_range=False)


def data_text(data: bytes | None) -> str:
    """Return the bytes of a key or a value: as text if they look like text, else as hex."""
    if data is None:
        return "null"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return hexed(data)
    binary = any(character < " " and character not in "\t\n\r" for character in text[:200])
    return hexed(data) if binary else quoted(text)


class _LocatedRecords:
    """Finds the bytes of a batch's records; a compressed batch has its own block for them."""

    def __init__(
        self, batch: RecordBatch | LegacyBatch, name: str, at: Place, is_secret: bool
    ) -> None:
        self._batch = batch
        self._name = name
        self._at = at
        self._is_secret = is_secret
        self._opened: tuple[int, dict[str, Place]] = -1, {}

    def record(self, index: int) -> Place | None:
        """Return the place of a record; None if it was not found."""
        block, starts = self._starts
        if index + 1 >= len(starts):
            return None
        return Place(block, starts[index], starts[index + 1])

    def field(self, index: int, name: str) -> Place | None:
        """Return the place of a field of a record, with its length."""
        return self._fields(index).get(name)

    def field_nodes(self, index: int, masked: Sequence[str]) -> list[TreeNode]:
        """Return the nodes of the fields that the line of a record shows, but for headers."""
        record = self._batch.records[index]
        nodes = []
        for name, place in self._fields(index).items():
            if name.startswith("headers["):
                continue
            value = getattr(record, _AS_WRITTEN.get(name, name), None)
            hides = name in masked
            text = data_text(value) if name in ("key", "value") else str(value)
            nodes.append(
                TreeNode(
                    name,
                    MASK if hides else text,
                    place,
                    path=_FILTER_NAMES.get(name, ""),
                    value=value,
                    is_masked=hides,
                    is_inline=True,
                )
            )
        return nodes

    def _fields(self, index: int) -> dict[str, Place]:
        if self._opened[0] != index:
            place = self.record(index)
            fields = {} if place is None else _field_places(place, self._batch)
            self._opened = index, fields
        return self._opened[1]

    @cached_property
    def _starts(self) -> tuple[Block, list[int]]:
        """Bytes with the records, begin of each, and end of the last one."""
        batch, at = self._batch, self._at
        number = batch.attributes & CODEC_MASK
        is_legacy = isinstance(batch, LegacyBatch)
        header = header_of(batch.magic) if is_legacy else layout.BATCH
        payload = batch.payload or b""
        if not number:
            if is_legacy:
                end = at.start + header.size + len(payload)
                return at.block, [at.start, end]
            begin = at.start + header.size
            return at.block, _record_starts(at.block.data, begin, begin + len(payload))
        if is_legacy:
            payload = (batch.records and _wrapped_value(payload)) or b""
        data = bytes(decompress(number, payload, Budget(DEFAULT), magic=batch.magic).data)
        masked = [(0, len(data))] if self._is_secret else []
        block = Block(f"records{self._name}", data, masked, is_frame=False)
        starts = (_message_starts if is_legacy else _record_starts)(data, 0, len(data))
        # Wrappers inside a wrapper have separate bytes, which are not shown.
        is_nested = is_legacy and len(starts) != len(batch.records) + 1
        return block, [] if is_nested else starts


_FILTER_NAMES = {"key": "kafka.message_key", "value": "kafka.message_value"}
"""The names of a record's fields in filters of exchanges."""

_AS_WRITTEN = {"offset": "inner_offset"}
"""The fields of a legacy record that differ from its bytes."""


def _record_starts(data: bytes, at: int, end: int) -> list[int]:
    """Return the positions of records of magic 2, and the end of the last readable one."""
    starts = [at]
    while at < end:
        size = shift = 0
        for byte in data[at : at + 5]:
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        at += size >> 1
        if size & 1 or at > end:
            break
        starts.append(at)
    return starts


def _message_starts(data: bytes, at: int, end: int) -> list[int]:
    """Return the begins of messages in a set, and the end of the last complete one."""
    starts = [at]
    while at + layout.LENGTH_END <= end:
        size = int.from_bytes(data[at + 8 : at + layout.LENGTH_END], "big", signed=True)
        at += layout.LENGTH_END + size
        if size < layout.MIN_MESSAGE_SIZE or at > end:
            break
        starts.append(at)
    return starts


def _wrapped_value(payload: bytes) -> bytes | None:
    """Return the value of a wrapper message."""
    try:
        value: bytes | None = MESSAGE_BODY.parse(payload)["value"]
    except DecodeError:
        return None
    return value


def _field_places(record: Place, batch: RecordBatch | LegacyBatch) -> dict[str, Place]:
    """Return the place of each field of a record; of damaged ones those before the damage."""
    places: dict[str, Place] = {}
    base = record.start
    stream = io.BytesIO(record.block.data[base : record.end])

    def read(name: str, construct: Any) -> None:
        start = base + stream.tell()
        construct._parsereport(stream, None, "")
        places[name] = Place(record.block, start, base + stream.tell())

    try:
        if isinstance(batch, LegacyBatch):
            for member in (*header_of(batch.magic).construct.members, *MESSAGE_BODY.members):
                read(member.name, member.construct)
            return places
        varint._parsereport(stream, None, "")
        for member in RECORD.members:
            if member.name != "headers":
                read(member.name, member.construct)
                continue
            for number in range(member.construct.read_count(stream, None, "")):
                read(f"headers[{number}]", member.construct.item)
    except DecodeError:
        pass
    return places
