"""Output limits of a field, equal for objects and for columns."""

from __future__ import annotations

import numpy as np
import pytest

from dissector.engine.records.batch_scanner import max_bytes, max_records
from dissector.engine.records.batch_validation import invalid_fields
from dissector.protocol.records import Record, build_records, new_batch, parse_records
from dissector.protocol.records.compression import compress
from dissector.protocol.records.layout import BATCH, LENGTH_END
from dissector.protocol.records.limits import DEFAULT, MIB

SIZES = [0, 1, 61, 1000, 30_000, 50_100, 10**6, 5 * 10**6, 9 * 10**6, 10**8]
EMPTY = b"\x0c\0\0\0\1\1\0"
"""The smallest record."""


def bomb(count: int, declared: int | None = None, codec: int = 1) -> bytes:
    """Return a batch of `count` equal records."""
    batch = new_batch([Record()])
    batch.attributes = codec
    batch.payload = compress(codec, EMPTY * count)
    batch.records_count = count if declared is None else declared
    batch.batch_length = BATCH.size - LENGTH_END + len(batch.payload)
    return batch.to_bytes(fix_crc=True)


@pytest.mark.parametrize("size", SIZES)
def test_columns_and_objects_have_the_same_limits(size: int) -> None:
    assert max_records(np.array([size])).tolist() == [DEFAULT.records_of(size)]
    assert max_bytes(np.array([size])).tolist() == [DEFAULT.bytes_of(size)]


@pytest.mark.parametrize("codec", [1, 3, 4])
@pytest.mark.parametrize("count", [100, 2000, 200_000])
def test_columns_and_objects_agree_on_limits(codec: int, count: int) -> None:
    data = bomb(count, codec=codec)
    batches = parse_records(data)
    where = np.zeros(1, np.int64), np.array([len(data)]), np.zeros(1, np.bool_)
    wrong = invalid_fields(np.frombuffer(data, np.uint8), np.zeros(0, np.uint8), *where)
    assert wrong.tolist() == [any(batch.problems for batch in batches)]
    assert wrong.tolist() == [count > DEFAULT.records_of(len(data))]


def test_records_beyond_the_limit_are_counted_and_few_kept() -> None:
    data, kept = bomb(200_000) * 10, DEFAULT.kept_records
    allowed = DEFAULT.records_of(len(data))
    batch, _ = parse_records(data)
    assert len(batch.records) == kept
    assert [problem.what for problem in batch.problems] == [
        f"{200_000 - allowed} more records: the field has more than {allowed}; they are not read",
        f"{allowed - kept} more records: the field has more than {allowed}",
    ]


def test_output_beyond_the_limit_is_a_problem() -> None:
    batch = new_batch([Record(value=bytes(8 * MIB))], codec="zstd")
    (read,) = parse_records(build_records([batch]))
    assert "gives more than" in read.problems[0].what


@pytest.mark.parametrize("size", [BATCH.size, 100, 10**4, 10**6, 10**8])
def test_output_of_many_fields_is_proportional_to_their_bytes(size: int) -> None:
    assert DEFAULT.bytes_of(size) <= 1_100 * size


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_valid_batches_pass(codec: str) -> None:
    # Only zstd compresses equal bytes beyond any proportional limit.
    text = bytes(MIB) if codec != "zstd" else b" ".join(b"%d" % i for i in range(MIB // 8))
    large = new_batch([Record(value=text)], codec=codec)
    many = new_batch([Record(offset_delta=i, value=b"x" * 10) for i in range(10_000)], codec=codec)
    for batch in (large, many):
        (read,) = parse_records(build_records([batch]))
        assert read.problems == []
        assert len(read.records) == len(batch.records)
