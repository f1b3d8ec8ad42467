"""Record batches: kafkashark's reader against those of kafka-python and aiokafka."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from benchmarks.timing import Row, call_us
from dissector.protocol.records import Record, new_batch, parse_records

RECORDS = 140


def rows() -> Iterator[Row]:
    """Time the reading of one batch, including its CRC check."""
    records = [
        Record(offset_delta=i, key=b"customer-%d" % i, value=bytes(60)) for i in range(RECORDS)
    ]
    for codec in ("none", "lz4"):
        data = new_batch(records, codec=codec).to_bytes()
        what = f"read a batch of {RECORDS} records, {codec}"
        own_us = call_us(lambda data=data: parse_records(data)) / RECORDS
        for peer, call in (("kafka-python", _kafka_python(data)), ("aiokafka", _aiokafka(data))):
            peer_us = call_us(call) / RECORDS
            figures = f"{own_us:.2f} us a record against {peer_us:.2f} us"
            yield Row(what, peer, peer_us / own_us, figures)


def _kafka_python(data: bytes):  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka.record import MemoryRecords

    def read() -> None:
        batch = MemoryRecords(data).next_batch()
        batch.validate_crc()
        for _ in batch:
            pass

    return read


def _aiokafka(data: bytes):  # type: ignore[no-untyped-def]
    from aiokafka.record.memory_records import MemoryRecords

    def read() -> None:
        batch = MemoryRecords(data).next_batch()
        batch.validate_crc()
        for _ in batch:
            pass

    return read
