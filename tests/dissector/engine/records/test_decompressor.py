"""Batches decompressed into arenas of bounded size."""

from __future__ import annotations

import numpy as np
import pytest

from dissector.engine.records import decompressor as module
from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import HEADER_BYTES, INVALID, UNDECIDED, VALID, Batches
from dissector.engine.records.decompressor import Payloads, iter_payloads
from dissector.protocol.records import Record, new_batch
from dissector.protocol.records.compression import compress, decompress

PLAIN = new_batch([Record(value=b"plain")]).to_bytes()
PACKED = new_batch([Record(value=bytes(1000))] * 3, codec="lz4").to_bytes()
INSIDE = decompress(3, PACKED[HEADER_BYTES:]).data

Opened = tuple[list[Payloads], Batches, list[bytes]]


def opened(*fields: bytes, units: list[int], most_records: int | None = None) -> Opened:
    """Return the decompressed units, the batches, and the records of each."""
    data = np.frombuffer(b"".join(fields[:2]), np.uint8)
    held = np.frombuffer(b"".join(fields[2:]), np.uint8)
    length = np.array([len(each) for each in fields], np.int64)
    start = np.cumsum(length) - length
    found = find_batches(data, held, start, length, np.ones(len(fields), np.bool_))
    parts, contents = [], []
    for these in iter_payloads(data, held, found, np.array(units), most_records):
        parts.append(these)
        everything = b"".join((data.tobytes(), held.tobytes(), these.arena[:99_999].tobytes()))
        places = zip(these.start.tolist(), these.end.tolist(), strict=True)
        contents += [everything[begin:end] for begin, end in places]
    return parts, found, contents


def test_uncompressed_batches_are_not_copied() -> None:
    fields = PLAIN + PACKED, PACKED, PLAIN, PACKED
    parts, found, contents = opened(*fields, units=[0, 1, 2, 3, 4])
    (these,) = parts
    assert contents == [PLAIN[HEADER_BYTES:], INSIDE, INSIDE, PLAIN[HEADER_BYTES:], INSIDE]
    assert these.start[0] == HEADER_BYTES
    assert these.start[3] == found.start[3] + HEADER_BYTES
    assert these.batch.tolist() == [0, 1, 2, 3, 4]


def test_full_arenas_are_released_between_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ARENA_BYTES", 5000)
    fields = [PACKED, PLAIN + PACKED, PACKED, PACKED, PLAIN, PACKED, PLAIN]
    parts, _, contents = opened(*fields, units=[0, 1, 1, 1, 2, 3, 4, 5])
    assert [these.batch.tolist() for these in parts] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert contents == [INSIDE, PLAIN[HEADER_BYTES:], *[INSIDE] * 3, *contents[5:]]
    assert contents[5:] == [PLAIN[HEADER_BYTES:], INSIDE, PLAIN[HEADER_BYTES:]]


def test_records_come_in_several_units() -> None:
    fields = [PACKED, PLAIN + PACKED, PACKED, PLAIN, PLAIN, PLAIN, PACKED]
    parts, _, contents = opened(*fields, units=[0, 1, 1, 2, 3, 4, 5, 6], most_records=5)
    assert [these.batch.tolist() for these in parts] == [[0, 1, 2], [3], [4, 5, 6, 7]]
    assert contents[0] == INSIDE
    assert contents[5:] == [PLAIN[HEADER_BYTES:], PLAIN[HEADER_BYTES:], INSIDE]


def test_a_unit_beyond_the_limit_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNIT_BYTES", 2 * len(INSIDE))
    _, found, contents = opened(*[PACKED] * 5, units=[0, 1, 1, 1, 2])
    assert found.state.tolist() == [VALID, VALID, VALID, UNDECIDED, VALID]
    assert contents == [INSIDE, INSIDE, INSIDE, b"", INSIDE]


def test_undecompressible_batches_are_invalid() -> None:
    torn = new_batch([Record()], codec="zstd")
    torn.payload, torn.batch_length = b"no zstd", HEADER_BYTES - 12 + 7
    few = new_batch([Record(value=b"v")] * 9, codec="gzip")
    few.payload = compress(1, b"\0" * (9 * 7 - 1))
    few.batch_length = HEADER_BYTES - 12 + len(few.payload)
    fields = [each.to_bytes(fix_crc=True) for each in (torn, few)]
    _, found, contents = opened(fields[0] + PACKED, fields[1], PACKED, units=[0, 0, 1, 2])
    assert found.state.tolist() == [INVALID, INVALID, VALID]
    assert contents == [b"", b"", b"", INSIDE]
