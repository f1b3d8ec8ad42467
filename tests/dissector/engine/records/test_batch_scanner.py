"""Batches found in many fields."""

from __future__ import annotations

import numpy as np
import pytest

from dissector.engine.records import batch_scanner
from dissector.engine.records.batch_scanner import LIBRARY_MIN_BYTES, find_batches, verify_crcs
from dissector.engine.records.batch_table import INVALID, UNDECIDED, VALID, BatchColumns, Batches
from dissector.kernel import Kernel
from dissector.protocol.records import Record, build_records, new_batch, new_message_set
from dissector.protocol.records.layout import BATCH
from tests.kernel_modes import both

mode = both(batch_scanner)

NO_BYTES = np.zeros(0, np.uint8)
ONE = new_batch([Record(value=b"v")])
PLAIN = ONE.to_bytes()


def find(*fields: bytes, cut: bool = True) -> Batches:
    data = np.frombuffer(b"".join(fields), np.uint8)
    length = np.array([len(each) for each in fields], np.int64)
    may_be_cut = np.full(len(fields), cut)
    return find_batches(data, NO_BYTES, np.cumsum(length) - length, length, may_be_cut)


def test_the_columns_have_the_fields_of_headers() -> None:
    first = new_batch(
        [Record(timestamp=5, value=b"a"), Record(timestamp=7)],
        base_offset=1 << 40,
        producer_id=1 << 50,
        producer_epoch=3,
        base_sequence=9,
        transactional=True,
    )
    data = first.to_bytes(fix_crc=True)
    found = find(PLAIN + data, b"", data)
    assert found.state.tolist() == [VALID] * 3
    assert found.field.tolist() == [0, 0, 2]
    assert found.start.tolist() == [0, len(PLAIN), len(PLAIN) + len(data)]
    header = BATCH.unpack_from(data)
    names = (
        *((each, each) for each in BatchColumns._fields[3:11]),
        ("records_count", "record_count"),
    )
    for name, column in names:
        assert getattr(found, column)[1] == header[BATCH.names.index(name)], name
    assert found.end.tolist()[-1] == len(PLAIN) + 2 * len(data)


def test_state_of_records_fields() -> None:
    crc = bytearray(PLAIN)
    crc[20] ^= 1
    magic = PLAIN[:16] + b"\x03" + PLAIN[17:]
    short = PLAIN[:8] + (13).to_bytes(4, "big") + PLAIN[12:]
    old = build_records(new_message_set([Record(value=b"v")]))
    assert find(PLAIN, bytes(crc), magic, short, old, PLAIN[:-1]).state.tolist() == [
        *(VALID, INVALID, INVALID, INVALID, UNDECIDED, VALID)
    ]
    assert find(PLAIN, PLAIN[:-1], PLAIN[:3], cut=False).state.tolist() == [VALID, INVALID, INVALID]


def test_records_beyond_the_limit_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    count = ONE.records_count
    limit = 3 * (count + 1)
    monkeypatch.setattr(batch_scanner, "MAX_RECORDS", limit)
    assert find(PLAIN * 3, PLAIN * 4, PLAIN).state.tolist() == [VALID, UNDECIDED, VALID]


def test_capacity_grows_for_many_batches() -> None:
    empty = new_batch([]).to_bytes()
    found = find(empty * 700, empty * 3, empty * 900)
    assert found.field.tolist() == [0] * 700 + [1] * 3 + [2] * 900
    assert (np.diff(found.start) == len(empty)).all()
    assert found.state.tolist() == [VALID] * 3


@pytest.mark.parametrize("size", [LIBRARY_MIN_BYTES // 2, LIBRARY_MIN_BYTES])
@pytest.mark.parametrize("own", [True, False])
def test_wrong_checksums(monkeypatch: pytest.MonkeyPatch, own: bool, size: int) -> None:
    if not own:  # a size that libraries check
        kernel = Kernel(batch_scanner.verify_kernel.python)
        monkeypatch.setattr(batch_scanner, "verify_kernel", kernel)
    large = new_batch([Record(value=b"v" * size)]).to_bytes()
    old = build_records(new_message_set([Record(value=b"v" * size)]))
    bad, wrong = (each[:-1] + b"x" for each in (large, old))
    fields = [large, bad, old, wrong]
    lengths = np.array([len(each) for each in fields])
    data = np.frombuffer(b"".join(fields), np.uint8)
    split = len(large) + len(bad)
    places = data[:split], data[split:], np.cumsum(lengths) - lengths, lengths
    found = find_batches(*places, np.zeros(4, np.bool_), message_sets=True)
    verify_crcs(*places[:2], found, np.arange(4))
    assert found.state.tolist() == [VALID, INVALID, VALID, INVALID]
