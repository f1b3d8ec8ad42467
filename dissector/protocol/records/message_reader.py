"""
Reads messages of magic 0 and 1, and the messages that they wrap.

Source: Kafka's AbstractLegacyRecordBatch.java and LegacyRecord.java; KIP-31, KIP-32.
"""

from __future__ import annotations

import struct
from zlib import crc32

from dissector.errors import DecodeError, Problem, ProblemKind
from dissector.protocol.records import layout
from dissector.protocol.records.compression import CODEC_MASK, decompress
from dissector.protocol.records.limits import Budget
from dissector.protocol.records.message_set import LegacyBatch, LegacyRecord, header_of

_LENGTH = struct.Struct(">i")


def read_message(data: bytes, start: int, end: int, path: str, budget: Budget) -> LegacyBatch:
    """
    Read one message at the top of a set; its header must be complete.

    Args:
        data: The `records` field.
        start: Begin of the message.
        end: End of the message, according to its size.
        path: Its name in problems: `records[0]`.
        budget: The remaining limits of decompression and records.
    """
    reader = _Reader(budget)
    record = reader.message(data, start, end, path)
    header = header_of(record.magic)
    batch = LegacyBatch(
        record.offset,
        record.message_size,
        record.crc,
        record.magic,
        record.attributes,
        record.timestamp,
        payload=data[start + header.size : end],
        crc_ok=reader.crc_ok,
        problems=reader.problems,
        position=start,
    )
    if record.attributes & CODEC_MASK and record.value is not None:
        reader.compressed_at = start + header.size
        batch.records = reader.unwrap(record, path, 1)
    else:
        batch.records = [record]
    return batch


class _Reader:
    """
    Reads one message of a set and all messages that it wraps.

    Attributes:
        problems: Problems, in order.
        crc_ok: Whether the CRC-32 of the last message was right.
        compressed_at: Inside a wrapper, the position of its value in the field; the bytes inside
            have no position of their own there.
    """

    def __init__(self, budget: Budget) -> None:
        self.problems: list[Problem] = []
        self.crc_ok = True
        self.compressed_at: int | None = None
        self._budget = budget

    def message(
        self, data: bytes, start: int, end: int, path: str, index: int | None = None
    ) -> LegacyRecord:
        """Read message `index` of the set at `path`, without unwrapping it."""
        magic = data[start + layout.MAGIC_AT]
        timestamp: int | None = None
        if magic:
            fields = layout.MESSAGE_1.unpack_from(data, start)
            offset, size, crc, magic, attributes, timestamp = fields
            at = start + layout.MESSAGE_1.size
        else:
            offset, size, crc, magic, attributes = layout.MESSAGE_0.unpack_from(data, start)
            at = start + layout.MESSAGE_0.size
        computed = crc32(data[start + layout.MESSAGE_CRC_FROM : end])
        self.crc_ok = computed == crc
        if not self.crc_ok:
            message = f"CRC-32 is {crc:#010x}, computed {computed:#010x}"
            self._add(message, f"{_message_path(path, index)}.crc", start + layout.LENGTH_END)
        key = value = None
        name = "key"
        try:
            key, at = _bytes_at(data, at, end)
            name = "value"
            value, at = _bytes_at(data, at, end)
        except DecodeError as error:
            self._add(error.what, f"{_message_path(path, index)}.{name}", error.position, "length")
        else:
            if at != end:
                self._add(f"{end - at} bytes left after the value", _message_path(path, index), at)
        fields = (offset, offset, size, crc, magic, attributes, timestamp, key, value)
        return LegacyRecord._make(fields)

    def unwrap(self, wrapper: LegacyRecord, path: str, depth: int) -> list[LegacyRecord]:
        """Read the messages inside a wrapper, with absolute offsets and their timestamps."""
        number = wrapper.attributes & CODEC_MASK
        if depth > self._budget.limits.max_nesting:
            self._add(f"message sets are nested deeper than {depth - 1}", path, 0, "limit")
            return [wrapper]
        data, problem, kind = decompress(
            number, wrapper.value or b"", self._budget, magic=wrapper.magic
        )
        if problem:
            self._add(problem, f"{path}.value", None, kind)
        inner = self._set(data, f"{path}.records", is_damaged=problem is not None)
        return self._absolute(wrapper, inner, path, depth)

    def _set(self, data: bytes, path: str, *, is_damaged: bool) -> list[LegacyRecord]:
        """Read a decompressed message set."""
        messages: list[LegacyRecord] = []
        at = 0
        while at < len(data):
            index = len(messages)
            if self._budget.records <= 0:
                limit = self._budget.max_records
                message = f"the field has more than {limit} records; the rest is not read"
                self._add(message, path, at, "limit")
                return messages
            size = int.from_bytes(data[at + 8 : at + layout.LENGTH_END], "big", signed=True)
            end = at + layout.LENGTH_END + size
            if end > len(data) or not is_long_enough(data, at, end):
                if not is_damaged:
                    message = "message is cut off, or its size is wrong"
                    self._add(message, _message_path(path, index), at)
                return messages
            if data[at + layout.MAGIC_AT] > 1:
                message = f"magic {data[at + layout.MAGIC_AT]} in a message set"
                self._add(message, _message_path(path, index), at)
                return messages
            self._budget.records -= 1
            messages.append(self.message(data, at, end, path, index))
            at = end
        if not messages and not is_damaged:
            self._add("wrapper holds no messages", path, None)
        return messages

    def _absolute(
        self, wrapper: LegacyRecord, inner: list[LegacyRecord], path: str, depth: int
    ) -> list[LegacyRecord]:
        """Make offsets and timestamps inside a wrapper absolute; unwrap nested wrappers."""
        base = 0
        # Produce requests of some clients (librdkafka) have 0 here: then the inner offsets are
        # absolute, as for Kafka's own reader.
        if wrapper.magic and wrapper.offset and inner:
            base = wrapper.offset - inner[-1].inner_offset
            if base < 0:
                last = inner[-1].inner_offset
                message = f"wrapper has offset {wrapper.offset}, its last message {last}"
                self._add(message, f"{path}.offset", None)
                base = 0
        has_append_time = wrapper.magic and wrapper.attributes & layout.TIMESTAMP_TYPE
        out: list[LegacyRecord] = []
        for index, record in enumerate(inner):
            if base or has_append_time:
                record = record._replace(
                    offset=layout.int64(record.offset + base),
                    timestamp=wrapper.timestamp if has_append_time else record.timestamp,
                )
            if record.attributes & CODEC_MASK and record.value is not None:
                out += self.unwrap(record, f"{path}.records[{index}]", depth + 1)
            else:
                out.append(record)
        return out

    def _add(self, message: str, path: str, position: int | None, kind: ProblemKind = "") -> None:
        """Add a problem; a position inside a wrapper becomes part of its text."""
        if self.compressed_at is not None:
            if position:
                message = f"{message} (byte {position} of the decompressed messages)"
            position = self.compressed_at
        self.problems.append(Problem(message, path, position, kind))


def _message_path(path: str, index: int | None) -> str:
    """Return the path of a message of a set."""
    return path if index is None else f"{path}[{index}]"


def is_long_enough(data: bytes, start: int, end: int) -> bool:
    """Return whether a message's size is at least the minimum of its magic."""
    minimum = layout.MIN_MESSAGE_SIZE + layout.LENGTH_END
    if end - start < minimum:
        return False
    return data[start + layout.MAGIC_AT] != 1 or end - start >= minimum + 8


def _bytes_at(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Read an int32 length and that number of bytes, or null, of a message that ends at `end`."""
    if at + 4 > end:
        raise DecodeError("message ends early", position=at)
    (size,) = _LENGTH.unpack_from(data, at)
    at += 4
    if 0 <= size <= end - at:
        return data[at : at + size], at + size
    if size == -1:
        return None, at
    message = f"length {size} but {end - at} bytes are left in the message"
    raise DecodeError(message, position=at - 4)
