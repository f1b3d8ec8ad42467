"""
Record batches (magic 2): a header, and records that are compressed together.

Source: KIP-98; https://kafka.apache.org/documentation/#recordbatch; KIP-534 (delete horizon).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from typing import Any, Protocol, cast

from dissector.errors import Problem
from dissector.protocol.records import layout
from dissector.protocol.records.compression import CODEC_MASK, codec_name, compress, decompress
from dissector.protocol.records.control import control_type
from dissector.protocol.records.limits import Budget
from dissector.protocol.records.record import Record, locate_error, read_records, write_records


@dataclass(slots=True)
class RecordBatch:
    """
    A batch of magic 2. The header fields are Kafka's, in wire order, as captured.

    Attributes:
        payload: The bytes after the header, as captured, which building writes unchanged; None if
            the records are to be written and compressed again, with lengths, count and CRC.
        records: The records that could be read; use `with_records` to change them.
        crc_ok: Whether the captured CRC-32C was right.
        problems: Problems of the batch; positions are in the `records` field.
        position: Where in the field the batch begins.
    """

    base_offset: int = 0
    batch_length: int = 0
    partition_leader_epoch: int = -1
    magic: int = 2
    crc: int = 0
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp: int = 0
    max_timestamp: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    records_count: int = 0
    _: KW_ONLY
    payload: bytes | None = None
    records: list[Record] = field(default_factory=list)
    crc_ok: bool = True
    problems: list[Problem] = field(default_factory=list)
    position: int = 0

    @property
    def codec(self) -> str:
        """`none`, `gzip`, `snappy`, `lz4`, `zstd`, or `codec 5` for a number without a name."""
        return codec_name(self.attributes)

    @property
    def timestamp_type(self) -> str:
        """The side that set the timestamps: producer (`CreateTime`), broker (`LogAppendTime`)."""
        return timestamp_type(self.attributes)

    @property
    def transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & layout.TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether its records are control records."""
        return bool(self.attributes & layout.CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time of possible deletion of tombstones (KIP-534)."""
        return bool(self.attributes & layout.DELETE_HORIZON)

    def to_dict(self) -> dict[str, Any]:
        """Return header, its interpretation and records by name, as `--bodies` prints them."""
        out = {name: getattr(self, name) for name in layout.BATCH.names}
        for name in (
            "codec",
            "timestamp_type",
            "transactional",
            "control",
            "has_delete_horizon",
            "crc_ok",
        ):
            out[name] = getattr(self, name)
        out["records"] = [self._record_dict(record) for record in self.records]
        return out

    def _record_dict(self, record: Record) -> dict[str, Any]:
        out = record._asdict()
        out["headers"] = [{"key": key, "value": value} for key, value in record.headers]
        if not self.control:
            del out["control_type"]
        return out

    def with_records(self, records: Sequence[Record]) -> RecordBatch:
        """Return a batch with other records; count, last offset delta and max timestamp follow."""
        records = list(records)
        newest = max((record.timestamp for record in records), default=self.max_timestamp)
        appended = self.attributes & layout.TIMESTAMP_TYPE
        return replace(
            self,
            payload=None,
            records=records,
            records_count=len(records),
            last_offset_delta=records[-1].offset_delta if records else self.last_offset_delta,
            max_timestamp=self.max_timestamp if appended else newest,
            crc_ok=True,
            problems=[],
        )

    def to_bytes(self, *, fix_crc: bool = False) -> bytes:
        """
        Return the encoded batch.

        Args:
            fix_crc: Compute the CRC-32C even where payload and CRC are captured.

        Raises:
            EncodeError: A field can't be written.
        """
        payload, batch = self.payload, self
        if payload is None:
            payload = compress(self.attributes & CODEC_MASK, write_records(self.records))
            length = layout.BATCH.size - layout.LENGTH_END + len(payload)
            batch = replace(self, batch_length=length, records_count=len(self.records))
        elif not fix_crc:
            return layout.BATCH.pack(self) + payload
        return with_crc(layout.BATCH.pack(batch) + payload)


def timestamp_type(attributes: int) -> str:
    """Return the name of the timestamp type in attributes of magic 1 and 2."""
    return "LogAppendTime" if attributes & layout.TIMESTAMP_TYPE else "CreateTime"


def with_crc(batch: bytes) -> bytes:
    """Return the bytes of one batch with the correct CRC-32C."""
    crc = _crc32c()(memoryview(batch)[layout.BATCH_CRC_FROM :])
    return batch[: layout.MAGIC_AT + 1] + crc.to_bytes(4, "big") + batch[layout.BATCH_CRC_FROM :]


def has_right_crc(data: bytes, start: int, end: int) -> bool:
    """Return whether the CRC-32C of a whole batch of magic 2 at these positions fits its bytes."""
    crc = int.from_bytes(data[start + layout.MAGIC_AT + 1 : start + layout.BATCH_CRC_FROM], "big")
    return _crc32c()(memoryview(data)[start + layout.BATCH_CRC_FROM : end]) == crc


def read_batch(data: bytes, start: int, end: int, path: str, budget: Budget) -> RecordBatch:
    """
    Read one batch with a complete header.

    Args:
        data: The `records` field.
        start: Begin of the batch.
        end: End of the batch, according to its length.
        path: Its name in problems: `records[0]`.
        budget: The remaining limits of decompression and records.
    """
    payload = data[start + layout.BATCH.size : end]
    batch = RecordBatch(*layout.BATCH.unpack_from(data, start), payload=payload, position=start)
    crc = _crc32c()(memoryview(data)[start + layout.BATCH_CRC_FROM : end])
    if crc != batch.crc:
        batch.crc_ok = False
        message = f"CRC-32C is {batch.crc:#010x}, computed {crc:#010x}"
        batch.problems.append(Problem(message, f"{path}.crc", start + layout.MAGIC_AT + 1))
    _read_payload(batch, payload, path, budget)
    if batch.control:
        _set_control_types(batch, path)
    return batch


def _read_payload(batch: RecordBatch, payload: bytes, path: str, budget: Budget) -> None:
    """Decompress the payload and read its records into the batch."""
    after_header = batch.position + layout.BATCH.size
    count_at = after_header - 4
    count = min(batch.records_count, budget.records)
    compressed = batch.attributes & CODEC_MASK
    is_damaged = False
    if compressed and (payload or count):
        payload, problem, kind = decompress(compressed, payload, budget)
        if problem:
            is_damaged = True
            batch.problems.append(Problem(problem, f"{path}.records", after_header, kind))
    records, stopped = read_records(
        payload,
        count,
        batch.base_offset,
        batch.base_timestamp,
        batch.max_timestamp if batch.attributes & layout.TIMESTAMP_TYPE else None,
    )
    batch.records = records
    budget.records -= len(records)
    if is_damaged:
        return
    expected = batch.records_count
    if expected < 0:
        batch.problems.append(
            Problem(f"records_count is {expected}", f"{path}.records_count", count_at)
        )
    elif len(records) < expected and stopped == len(payload):
        message = f"records_count is {expected}, but there are {len(records)} records"
        batch.problems.append(Problem(message, f"{path}.records_count", count_at))
    elif len(records) < count:
        error = locate_error(payload, stopped)
        error.within(f"{path}.records[{len(records)}]")
        if compressed:
            message = f"{error.what} (byte {error.position} of the decompressed records)"
            batch.problems.append(Problem(message, error.path, after_header))
        else:
            batch.problems.append(Problem(error.what, error.path, after_header + error.position))
    elif count < expected:
        limit = budget.max_records
        message = (
            f"{expected - count} more records: the field has more than {limit}; they are not read"
        )
        batch.problems.append(Problem(message, f"{path}.records", after_header, "limit"))
    elif stopped < len(payload):
        message = f"{len(payload) - stopped} bytes left after the last of {expected} records"
        position = after_header if compressed else after_header + stopped
        batch.problems.append(Problem(message, f"{path}.records", position, "trailing"))


def _set_control_types(batch: RecordBatch, path: str) -> None:
    """Set the control types of the records of a control batch."""
    for index, record in enumerate(batch.records):
        name = control_type(record.key)
        if name is None:
            batch.problems.append(
                Problem(
                    "key of a control record is shorter than 4 bytes",
                    f"{path}.records[{index}].key",
                    batch.position + layout.BATCH.size,
                    "control_key",
                )
            )
        batch.records[index] = record._replace(control_type=name or "unknown control type")


class _Checksum(Protocol):
    def __call__(self, data: memoryview, /) -> int: ...


@cache
def _crc32c() -> _Checksum:
    """Import the CRC-32C at first use."""
    from crc32c import crc32c

    return cast(_Checksum, crc32c)
