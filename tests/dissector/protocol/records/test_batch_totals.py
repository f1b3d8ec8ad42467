"""Totals of a `records` field by the headers of its batches."""

from __future__ import annotations

import pytest

from dissector.protocol.records import Record, build_records, new_batch, new_message_set
from dissector.protocol.records.batch_totals import BatchTotals, batch_totals, crcs_are_right

PLAIN = new_batch([Record(value=b"a"), Record(value=b"b")]).to_bytes()
PACKED = new_batch([Record(value=b"c")], codec="gzip").to_bytes()
OLD = build_records(new_message_set([Record(value=b"d")], magic=1))


def with_size(size: int) -> bytes:
    return PLAIN[:8] + size.to_bytes(4, "big", signed=True) + PLAIN[12:]


@pytest.mark.parametrize(
    ("data", "totals"),
    [
        (b"", (0, "none", False)),
        (PLAIN, (2, "none", False)),
        (PACKED + PLAIN, (3, "gzip", False)),
        (OLD + PACKED, (2, "none", False)),
        (PLAIN + PACKED[:-1], (2, "none", True)),
        (PLAIN + PACKED[:16], (2, "none", True)),  # too short for any header
        (PLAIN + with_size(-1), (2, "none", True)),
        (PLAIN + with_size(len(PLAIN) - 12 - (1 << 24)), (2, "none", True)),
        (PLAIN * 1001, (2000, "none", True)),
    ],
)
def test_totals(data: bytes, totals: tuple[int, str, bool]) -> None:
    assert batch_totals(data)[:3] == BatchTotals(*totals)[:3]


def test_offsets_and_checksums() -> None:
    both = batch_totals(OLD + PLAIN)
    assert (both.batches, both.first_offset, both.last_offset) == (2, 0, 1)
    assert batch_totals(b"").first_offset is None
    assert crcs_are_right(OLD + PLAIN + PACKED)
    for at in (len(OLD) - 1, len(OLD) + len(PLAIN) - 1):
        damaged = bytearray(OLD + PLAIN)
        damaged[at] ^= 1
        assert not crcs_are_right(bytes(damaged))
