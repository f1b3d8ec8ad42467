"""
The whole contents of a `records` field: batches and messages of any magic, one after the other.

All magics begin with an offset and a size, and have their magic byte at the same place; so the next
batch is found even behind a damaged one.

Source: Kafka's ByteBufferLogInputStream.java; KIP-98 ("the magic byte is at the same offset").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dissector.errors import Problem
from dissector.protocol.records import layout
from dissector.protocol.records.batch import RecordBatch, read_batch
from dissector.protocol.records.limits import DEFAULT, Budget, Limits
from dissector.protocol.records.message_reader import is_long_enough, read_message
from dissector.protocol.records.message_set import LegacyBatch


@dataclass(slots=True)
class UnreadBatch:
    """
    Bytes of a `records` field that are not a complete batch of a known magic.

    Attributes:
        data: The bytes, also used for building.
        partial: Whether they are the beginning of a truncated batch, as Fetch responses may end.
        problems: Problems of the bytes; positions are in the `records` field.
        position: Where in the field they begin.
    """

    data: bytes
    partial: bool = False
    problems: list[Problem] = field(default_factory=list)
    position: int = 0

    @property
    def base_offset(self) -> int | None:
        """Offset at the beginning of the bytes; None if truncated."""
        return _number(self.data, 0, 8)

    @property
    def batch_length(self) -> int | None:
        """Declared size; None if truncated."""
        return _number(self.data, 8, layout.LENGTH_END)

    @property
    def magic(self) -> int | None:
        """Declared magic; None if truncated."""
        return _number(self.data, layout.MAGIC_AT, layout.MAGIC_AT + 1)

    @property
    def records(self) -> list[Any]:
        """Empty: no record could be read."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return the readable part, as `--bodies` prints it."""
        return {
            "base_offset": self.base_offset,
            "batch_length": self.batch_length,
            "magic": self.magic,
            "partial": self.partial,
            "bytes": self.data,
            "records": [],
        }

    def to_bytes(self, *, fix_crc: bool = False) -> bytes:
        """Return the bytes as captured; they have no CRC to fix."""
        return self.data


Batch = RecordBatch | LegacyBatch | UnreadBatch


def parse_records(data: bytes, *, limits: Limits = DEFAULT, may_be_cut: bool = True) -> list[Batch]:
    """
    Read all batches and messages of a `records` field.

    Args:
        data: The field's bytes, without its length.
        limits: Limits of decompression.
        may_be_cut: Whether the last batch may be truncated, as brokers do in Fetch responses. In a
            Produce request it is a problem.

    Returns:
        The batches in order. An unreadable part is an `UnreadBatch`; problems are in each batch's
        `problems`. Bytes never raise.
    """
    batches: list[Batch] = []
    budget = Budget(limits, len(data))
    start = 0
    while start < len(data):
        path = f"records[{len(batches)}]"
        batch, start = _read_next(data, start, path, budget)
        if isinstance(batch, UnreadBatch) and batch.partial and not may_be_cut:
            message = f"batch is cut off after {len(batch.data)} bytes"
            batch.problems.append(Problem(message, path, batch.position))
        batches.append(batch)
    if budget.records <= 0:
        _drop_excess_records(batches, budget)
    return batches


def _drop_excess_records(batches: Iterable[Batch], budget: Budget) -> None:
    """Drop records of a field with too many, so that its display is small too."""
    remaining = budget.limits.kept_records
    for index, batch in enumerate(batches):
        dropped = len(batch.records) - remaining
        if dropped > 0 and not isinstance(batch, UnreadBatch):
            del batch.records[remaining:]
            message = f"{dropped} more records: the field has more than {budget.max_records}"
            problem = Problem(message, f"records[{index}].records", batch.position, "limit")
            batch.problems.append(problem)
        remaining -= len(batch.records)


def _read_next(data: bytes, start: int, path: str, budget: Budget) -> tuple[Batch, int]:
    """Read the batch at `start`; return it and the start of the next one."""
    bytes_left = len(data) - start
    length = _number(data, start + 8, start + layout.LENGTH_END)
    if length is None or length + layout.LENGTH_END > bytes_left:
        return UnreadBatch(data[start:], partial=True, position=start), len(data)
    if length < layout.MIN_MESSAGE_SIZE:
        message = f"batch_length {length} is below the minimum; {bytes_left} bytes are not read"
        return _unread_batch(data, start, len(data), f"{path}.batch_length", message, start + 8)
    if budget.records <= 0:
        message = f"the field has more than {budget.max_records} records; the rest is not read"
        problem = Problem(message, path, start, "limit")
        return UnreadBatch(data[start:], False, [problem], start), len(data)
    budget.records -= 1
    end = start + layout.LENGTH_END + length
    magic = data[start + layout.MAGIC_AT]
    if magic > 2:
        message = f"magic {_number(data, start + layout.MAGIC_AT, start + layout.MAGIC_AT + 1)}"
        return _unread_batch(data, start, end, f"{path}.magic", f"{message} is unknown", start + 16)
    if magic == 2 and length >= layout.MIN_BATCH_LENGTH:
        budget.records += 1  # its records are counted one by one
        return read_batch(data, start, end, path, budget), end
    if magic < 2 and is_long_enough(data, start, end):
        return read_message(data, start, end, path, budget), end
    message = f"batch_length {length} is too small for magic {magic}"
    return _unread_batch(data, start, end, f"{path}.batch_length", message, start + 8)


def _unread_batch(
    data: bytes, start: int, end: int, path: str, message: str, position: int
) -> tuple[UnreadBatch, int]:
    """Return bytes as an unread batch with the problem."""
    return UnreadBatch(data[start:end], False, [Problem(message, path, position)], start), end


def _number(data: bytes, start: int, end: int) -> int | None:
    """Read a signed integer; None if truncated."""
    if end > len(data):
        return None
    return int.from_bytes(data[start:end], "big", signed=True)


def build_records(batches: Iterable[Batch], *, fix_crc: bool = False) -> bytes:
    """
    Write a `records` field: the reverse of `parse_records`.

    Unchanged batches are written byte for byte as captured, even with a wrong CRC.

    Args:
        batches: In the order of the field.
        fix_crc: Compute every CRC again.

    Raises:
        EncodeError: A value can't be written.
    """
    return b"".join(batch.to_bytes(fix_crc=fix_crc) for batch in batches)
