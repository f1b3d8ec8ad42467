"""The part of a capture covered by the report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dissector import open_capture
from dissector.engine.reading.capture import Capture, Options, Window
from findings.gather.covered_part import Part
from tests.corpus import FOLDER

DEMO = FOLDER / "demo.pcap"
COUNT = 281


def windows() -> Iterator[Window]:
    return Capture([str(DEMO)], Options(window_bytes=20_000)).windows()


def taken(part: Part, *, whole: bool) -> int:
    found = [part.take(window, whole=whole) for window in windows()]
    return sum(len(each.exchanges) for each in found if each is not None)


@pytest.mark.parametrize(("most", "expected"), [(None, COUNT), (COUNT, COUNT), (100, 100), (0, 0)])
def test_windows_are_truncated(most: int | None, expected: int) -> None:
    part = Part(most)
    assert taken(part, whole=False) == part.count == expected
    assert part.is_cut == (expected < COUNT)


def test_whole_windows_may_exceed_the_limit() -> None:
    part = Part(100)
    assert 100 < taken(part, whole=True) == part.count < COUNT
    assert part.is_cut


def test_the_end_of_the_part_is_known() -> None:
    part, every = Part(100), Part(None)
    taken(part, whole=False)
    taken(every, whole=False)
    last = max(each.response_time_ns or 0 for each in open_capture(DEMO))
    assert 0 < part.until_ns < every.until_ns == last
