"""Contradictions of a log to its acknowledgements."""

from __future__ import annotations

from replay.mapping.appended_ranges import MAX_STRETCHES, AppendedRecords
from replay.model.offset_ranges import Range

Rows = list[tuple[int, int, int]]


def appended(*rows: tuple[int, int, int]) -> AppendedRecords:
    """Captured offset, live offset and count of each request, in the order of steps."""
    out = AppendedRecords()
    for step, (captured, live, count) in enumerate(rows):
        out.add(captured, live, count, step)
    return out


def faults(*rows: tuple[int, int, int]) -> list[tuple[int, str]]:
    return [(each.step, each.field) for each in appended(*rows).faults()]


def test_records_in_a_row_are_one_stretch() -> None:
    found = appended((0, 50, 5), (5, 55, 5), (5, 55, 5), (10, 60, 1))
    assert [(each.captured, each.live, each.records) for each in found] == [(0, 50, 11)]
    assert (found.live_at(7), found.live_at(11), found.live_at(-1)) == (57, None, None)


def test_an_offset_acknowledged_twice_is_a_fault() -> None:
    assert faults((0, 0, 5), (5, 5, 5), (10, 5, 5)) == [(2, "records")]
    assert faults((0, 0, 5), (0, 0, 5)) == []  # a retry of an idempotent producer


def test_swapped_responses_are_a_fault() -> None:
    assert (2, "base_offset") in faults((0, 0, 1), (1, 2, 1), (2, 1, 1), (3, 3, 1))
    # Steps with overlapping requests may be appended in either order.
    assert faults((1, 0, 1), (0, 1, 1)) == []


def test_excess_records_are_found() -> None:
    found = appended((0, 0, 5), (5, 10, 5), (12, 17, 5))
    (extra,) = found.excess()
    assert (extra.stretch.step, extra.live, extra.expected) == (1, Range(5, 10), 0)
    (extra,) = appended((0, 0, 5), (6, 8, 5)).excess()  # a marker in the capture
    assert (extra.live, extra.expected) == (Range(5, 8), 1)


def test_unwritten_ranges_are_found() -> None:
    found = appended((10, 0, 5), (20, 5, 5))
    assert found.is_unwritten(15, 20)
    assert found.is_unwritten(25, 30)
    assert found.is_unwritten(0, 5)  # no room for them before the first
    assert not appended((10, 12, 5)).is_unwritten(0, 5)  # they may precede the replay
    assert not found.is_unwritten(14, 16)
    found.add_unconfirmed(1, step=9)
    assert not found.is_unwritten(15, 20)
    found.add(30, 31, 1, step=9)  # the retry tells which records the attempt had
    assert found.is_unwritten(15, 20)


def test_a_refused_attempt_explains_records_before_its_retry_only() -> None:
    found = AppendedRecords()
    found.add_unconfirmed(5, step=0)
    found.add_unconfirmed(5, step=1)
    found.add(captured=0, live=0, count=5, step=0)
    found.add(captured=5, live=10, count=5, step=1)
    assert found.unconfirmed
    allowance = found.unconfirmed
    assert allowance.take(Range(15, 20), 5) == 5
    assert allowance.take(Range(5, 10), 7) == 2
    assert allowance.take(Range(5, 10), 1) == 1


def test_an_unconfirmed_attempt_explains_records_anywhere() -> None:
    found = appended((0, 0, 5))
    found.add_unconfirmed(5, step=3)
    allowance = found.unconfirmed
    assert allowance.take(Range(15, 20), 3) == 0
    assert allowance.take(Range(20, 25), 3) == 1


def test_number_of_stretches_is_bounded() -> None:
    found = appended(*((2 * at, 3 * at, 1) for at in range(MAX_STRETCHES + 1)))
    assert sum(1 for _ in found) == MAX_STRETCHES // 2 + 1
