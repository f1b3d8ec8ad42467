from __future__ import annotations

import json
import struct
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import Problem
from dissector.protocol.records import (
    Batch,
    LegacyBatch,
    Limits,
    RecordBatch,
    UnreadBatch,
    build_records,
    iter_records,
    new_batch,
    new_message_set,
    parse_records,
)
from dissector.protocol.records.record import Record
from tests.dissector.protocol.records.record_values import FIELDS, problems

with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore", DeprecationWarning
    )  # its import uses deprecated functions of importlib
    from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

ONE = new_batch([Record(value=b"one", timestamp=5)]).to_bytes()
SMALL = Limits(max_decompressed_bytes=1 << 20, max_records=1000)


def test_empty_field() -> None:
    assert parse_records(b"") == []
    assert build_records([]) == b""


@given(FIELDS)
def test_any_mixture_of_magics_round_trips(batches: list[RecordBatch | LegacyBatch]) -> None:
    data = build_records(batches)
    out = parse_records(data)
    assert problems(out) == []
    assert build_records(out) == data
    assert [batch.magic for batch in out] == [batch.magic for batch in batches]
    assert [batch.position for batch in out] == sorted({batch.position for batch in out})

    def facts(given: list[Batch]) -> list[tuple[object, ...]]:
        return [row[:5] for row in iter_records(given)]

    assert facts(out) == facts(list(batches))


@given(FIELDS, st.data())
def test_a_truncated_field_gives_whole_batches_and_the_rest(
    batches: list[RecordBatch | LegacyBatch], data: st.DataObject
) -> None:
    whole = build_records(batches)
    cut = data.draw(st.integers(0, len(whole)))
    out = parse_records(whole[:cut])
    assert build_records(out) == whole[:cut]
    assert problems(out) == []
    read = [batch for batch in out if not isinstance(batch, UnreadBatch)]
    assert read == parse_records(whole)[: len(read)]
    assert len(out) - len(read) <= 1


def test_a_truncated_batch_has_its_header_fields() -> None:
    data = ONE + ONE[:30]
    batch, tail = parse_records(data)
    assert (batch.problems, tail.problems) == ([], [])
    assert tail == UnreadBatch(ONE[:30], partial=True, position=len(ONE))
    assert tail.to_dict() == {
        "base_offset": 0,
        "batch_length": len(ONE) - 12,
        "magic": 2,
        "partial": True,
        "bytes": ONE[:30],
        "records": [],
    }
    assert tail.records == []
    (stub,) = parse_records(b"\x00\x01")
    assert isinstance(stub, UnreadBatch)
    assert (stub.base_offset, stub.batch_length, stub.magic) == (None, None, None)


def test_a_partial_batch_is_a_problem_unless_allowed() -> None:
    (tail,) = parse_records(ONE[:30], may_be_cut=False)
    assert tail.problems == [Problem("batch is cut off after 30 bytes", "records[0]", 0)]
    assert parse_records(ONE, may_be_cut=False)[0].problems == []


def head(length: int, magic: int, size: int) -> bytes:
    """The start common to all magics, and zeros."""
    return struct.pack(">qiib", 3, length, -1, magic).ljust(size, b"\0")


BAD = [
    (head(48, 2, 60), "batch_length 48 is too small for magic 2", "batch_length", 8),
    (head(20, 1, 32), "batch_length 20 is too small for magic 1", "batch_length", 8),
    (head(49, 3, 61), "magic 3 is unknown", "magic", 16),
    (head(14, -1, 26), "magic -1 is unknown", "magic", 16),
]


@pytest.mark.parametrize(("data", "what", "path", "position"), BAD)
def test_a_bad_batch_does_not_hide_the_next(
    data: bytes, what: str, path: str, position: int
) -> None:
    first, bad, after = parse_records(ONE + data + ONE)
    problem = Problem(what, f"records[1].{path}", len(ONE) + position)
    assert bad == UnreadBatch(data, problems=[problem], position=len(ONE))
    assert (first.problems, after.problems) == ([], [])
    assert build_records([first, bad, after]) == ONE + data + ONE


@pytest.mark.parametrize("length", [13, 0, -1, -(1 << 31)])
def test_nothing_is_guessed_after_an_impossible_length(length: int) -> None:
    data = head(length, 2, 70)
    first, rest = parse_records(ONE + data)
    what = f"batch_length {length} is below the minimum; 70 bytes are not read"
    assert rest.problems == [Problem(what, "records[1].batch_length", len(ONE) + 8)]
    assert isinstance(rest, UnreadBatch)
    assert not rest.partial
    assert build_records([first, rest]) == ONE + data


def test_the_limit_of_records_applies_across_batches() -> None:
    out = parse_records(ONE * 10, limits=Limits(max_records=4))
    assert [len(batch.records) for batch in out] == [1, 1, 1, 1, 0]
    assert "more than 4 records" in out[-1].problems[0].what
    assert build_records(out) == ONE * 10


def test_the_limit_of_output_applies_across_batches() -> None:
    data = new_batch([Record(value=bytes(600_000))], codec="gzip").to_bytes() * 3
    out = parse_records(data, limits=SMALL)
    assert [len(batch.records) for batch in out] == [1, 0, 0]
    assert build_records(out) == data


@given(FIELDS, st.data())
def test_changed_bytes_give_problems_only(
    batches: list[RecordBatch | LegacyBatch], data: st.DataObject
) -> None:
    raw = bytearray(build_records(batches))
    for _ in range(data.draw(st.integers(1, 6))):
        if raw:
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at] = data.draw(st.sampled_from((0, 1, 2, 3, 4, 127, 128, 255)))
    hostile = bytes(raw)
    out = parse_records(hostile, limits=SMALL)
    assert build_records(out) == hostile
    for batch in out:
        assert all(0 <= (p.position or 0) <= len(hostile) for p in batch.problems)
        batch.to_dict()
    assert len(list(iter_records(out))) <= 1000


@given(st.binary(max_size=200))
def test_any_bytes_round_trip(data: bytes) -> None:
    assert build_records(parse_records(data, limits=SMALL)) == data


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "make",
    [
        lambda: head(14, 0, 26) * 20_000,  # the smallest messages, each with a wrong CRC
        lambda: head(49, 2, 61) * 8_000,
        lambda: new_batch([Record()] * 70_000).to_bytes(),
        lambda: new_message_set([Record()] * 20_000, magic=0, codec="gzip")[0].to_bytes(),
    ],
    ids=["messages", "batches", "records", "wrapped messages"],
)
def test_memory_depends_on_records_not_on_counts(make: Callable[[], bytes]) -> None:
    field = make()
    tracemalloc.start()
    out = parse_records(field)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert build_records(out) == field
    assert peak < 40 << 20


def test_a_count_alone_allocates_no_memory() -> None:
    data = bytearray(ONE)
    data[57:61] = b"\x7f\xff\xff\xff"
    tracemalloc.start()
    (batch,) = parse_records(bytes(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(batch.records) == 1
    assert peak < 100_000


CASES = [(0, codec) for codec in range(3)]  # kafka-python lacks xxhash for lz4 in magic 0
CASES += [(1, codec) for codec in range(4)]
CASES += [(2, codec) for codec in range(5)]


@pytest.mark.parametrize(("magic", "codec"), CASES)
def test_kafka_python_agrees(magic: int, codec: int) -> None:
    builder = MemoryRecordsBuilder(magic, codec, 1 << 20, offset=10 if codec == 0 else 0)
    for n in range(50):
        headers = [("h", b"x" * n)] if magic == 2 else []
        builder.append(1_700_000_000_000 + 7 * n, b"k%d" % n, b"v" * n if n % 5 else None, headers)
    builder.close()
    data = bytes(builder.buffer())

    def theirs(field: bytes) -> list[tuple[object, ...]]:
        return [
            (r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
            for batch in MemoryRecords(field)
            for r in batch
        ]

    out = parse_records(data)
    assert problems(out) == []
    assert build_records(out) == data
    assert [row[:5] for row in iter_records(out)] == theirs(data)
    rebuilt = build_records([batch.with_records(batch.records) for batch in out])
    assert theirs(rebuilt) == theirs(data)


def with_right_crc(data: bytes) -> list[tuple[int, Batch]]:
    """Every position of a batch or message with records and a valid CRC."""
    found = []
    for start in range(len(data) - 26):
        end = start + 12 + int.from_bytes(data[start + 8 : start + 12], "big", signed=True)
        if data[start + 16] <= 2 and start + 26 <= end <= len(data):
            batch = parse_records(data[start:end])[0]
            if not isinstance(batch, UnreadBatch) and batch.crc_ok:
                assert build_records([batch]) == data[start:end]
                found.append((start, batch))
    return found


def test_real_bytes(shared: Path) -> None:
    vectors = json.loads((shared / "captures/pixie__kafka_test_vectors.json").read_text())
    found = [batch for v in vectors for _, batch in with_right_crc(bytes.fromhex(v["hex"]))]
    assert problems(found) == []
    values = [row.value for row in iter_records(found)]
    assert len(values) == 15
    assert values[0] == b"This is my first event"
    assert b"\xc2Hola, mundo!" in values


@pytest.mark.parametrize(
    ("name", "magic", "timestamp", "key", "value", "headers"),
    [
        ("00-produce-v2", 1, 1479416797449, None, b"Message without compression", []),
        ("00-produce-v7-sw8", 2, 1700037570325, b"MyKey", b"Hello Kafka", ["sw8"]),
        ("00-produce-v9", 2, 1726216597021, None, b"q" * 31, []),
        ("produce-v9-old", 2, 1698830430078, None, b"2" * 13 + b"-" * 21, []),
    ],
)
def test_real_captures(
    shared: Path,
    name: str,
    magic: int,
    timestamp: int,
    key: bytes | None,
    value: bytes,
    headers: list[str],
) -> None:
    data = (shared / f"captures/kafka/deepflow__{name}.pcap").read_bytes()
    ((_, batch),) = with_right_crc(data)
    (row,) = iter_records([batch])
    assert batch.problems == []
    assert (row.magic, row.timestamp_ms, row.key, row.value) == (magic, timestamp, key, value)
    assert [name for name, _ in row.headers] == headers
