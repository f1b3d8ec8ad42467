"""Rows spilled to a file."""

from __future__ import annotations

from replay.report.row_spill import RowSpill


def test_rows_are_read_back_between_additions() -> None:
    kept = RowSpill()
    for number in range(3):
        kept.add({"number": number, "bytes": b"\x00\xff"})
        assert [row["number"] for row in kept.rows()] == list(range(number + 1))
    assert list(kept.rows(1)) == [{"number": 0, "bytes": "00ff"}]
    kept.add({"number": 3})
    assert len(kept) == len(list(kept.rows())) == 4
