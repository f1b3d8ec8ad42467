"""Starts of ranges are guessed, and proven by the ends of their predecessors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dissector.errors import Problem
from pipeline.split.byte_ranges import (
    BEYOND,
    START_UNKNOWN,
    UNKNOWN,
    Range,
    RangeScan,
    misplaced,
    placed_ranges,
    ranges_of,
)
from pipeline.split.collection import Collection, File


def of(size: int, range_bytes: int, *, divisible: bool = True) -> list[Range]:
    return ranges_of(Collection((File("a", size, 0, divisible),)), range_bytes)


def bounds(ranges: list[Range]) -> list[tuple[int, int | None]]:
    return [(each.start, each.end) for each in ranges]


def test_large_pcap_files_are_divided() -> None:
    assert bounds(of(1000, 400)) == [(24, 400), (400, 800), (800, None)]
    assert bounds(of(1000, 1000)) == [(0, None)]
    assert bounds(of(1000, 400, divisible=False)) == [(0, None)]
    assert bounds(of(60, 1)) == [(24, 48), (48, None)]
    assert [each.proven for each in of(1000, 400)] == [True, False, False]
    files = File("a", 900, 0, True), File("b", 10, 1, True), File("c", problem="no such file")
    ranges = ranges_of(Collection(files), 500)
    assert [(each.number, each.path) for each in ranges] == [*enumerate("aabc")]
    assert [each.problem for each in ranges] == [None, None, None, Problem("no such file")]


def read(ranges: list[Range], starts: list[int], guess: Callable[[int], int]) -> list[Range]:
    """Read ranges of a file with records at these bytes until all are proven."""
    end = starts[-1] + 10
    found: dict[int, RangeScan] = {}
    again = list(ranges)
    while again:
        for each in again:
            start = each.start if each.proven else guess(each.start)
            # A wrong guess finds no record, or soon reaches a true start.
            mine = [at for at in starts if start <= at and (each.end is None or at < each.end)]
            stop = min([at for at in starts if each.end is not None and at >= each.end] or [end])
            found[each.number] = RangeScan(each.number, start, stop, len(mine), damaged=False)
        again = misplaced(ranges, found)
        assert all(each.proven for each in again)
    return placed_ranges(ranges, found)


def test_right_guesses_are_not_read_again() -> None:
    starts = list(range(24, 1000, 10))
    ranges = of(1004, 300)
    right = read(ranges, starts, lambda at: min(each for each in starts if each >= at))
    assert [each.start for each in right] == [24, 304, 604, 904]
    assert [each.first_packet for each in right] == [0, 28, 58, 88]


def test_wrong_guesses_are_corrected() -> None:
    starts = list(range(24, 1000, 10))
    for guess in (lambda at: at + 3, lambda at: UNKNOWN, lambda at: at + 250):
        found = read(of(1004, 300), starts, guess)
        assert [each.start for each in found] == [24, 304, 604, 904]
        assert [each.first_packet for each in found] == [0, 28, 58, 88]


def test_a_record_longer_than_ranges_leaves_empty_ones() -> None:
    starts = [24, 40, 950]
    found = read(of(1004, 300), starts, lambda at: at)
    assert [each.is_empty for each in found] == [False, True, True, False]
    assert [(each.start, each.first_packet) for each in found[1:]] == [(950, 2)] * 3


def test_ranges_behind_damage_are_not_read() -> None:
    ranges = ranges_of(Collection((File("a", 900, 0, True), File("b", 900, 1, True))), 300)
    found = {
        each.number: RangeScan(
            each.number, each.start, each.end or 900, 7, each.number == 1, reached_end=True
        )
        for each in ranges
    }
    placed = placed_ranges(ranges, found)
    assert [each.is_empty for each in placed] == [False, False, True, False, False, False]
    assert placed[2].start == BEYOND
    assert [each.first_packet for each in placed] == [0, 7, 14, 14, 21, 28]
    assert misplaced(ranges, found) == []


def test_guesses_behind_unreadable_ranges_are_accepted() -> None:
    """Results before the failure stay; a range without a known start is a problem."""
    ranges = of(1500, 300)
    found = {
        each.number: RangeScan(each.number, each.start, each.end or 1500, 7, False)
        for each in ranges
    }
    found[1] = replace(found[1], packets=3, damaged=True, problem="lost", end=450)
    found[2] = replace(found[2], start=UNKNOWN, end=900, packets=0)
    found[3] = replace(found[3], start=933)
    assert misplaced(ranges, found) == []
    placed = placed_ranges(ranges, found)
    assert [each.start for each in placed] == [24, 300, 600, 933, 1200]
    assert [each.first_packet for each in placed] == [0, 7, 10, 10, 17]
    assert [each.packets for each in placed] == [None, 3, 0, None, None]
    problems = [Problem("lost", position=450), Problem(START_UNKNOWN, position=600)]
    assert [each.problem for each in placed] == [None, *problems, None, None]
    # Ranges with other proofs are read again as usual.
    found[4] = replace(found[4], start=UNKNOWN)
    assert [(each.number, each.start) for each in misplaced(ranges, found)] == [(4, 1200)]
