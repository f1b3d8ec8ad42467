"""Rows waiting for names of topics, and their limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector import Capture, Options
from dissector.engine.exchanges import topic_resolution
from dissector.engine.exchanges.topic_resolution import resolve_late_names
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.column_types import Coded, Columns, Integers, Milliseconds
from dissector.engine.tables.exchange_table import NONE

CAPTURES = [
    Path(__file__).parents[4] / "captures" / name
    for name in ("kafka4-three-nodes.pcap", "kafka4-sweep-data.pcap")
]
ZERO = np.zeros(1, np.int64)


Window = tuple[set[int], set[int]]
"""Topics in a window, by number, and those that it names."""


def _id(number: int) -> UUID:
    """Return the id of a topic; 1 is KRaft's."""
    return UUID(int=100 + number)


def part(topics: set[int]) -> Columns:
    """Return a row with topics known by id only."""
    ids = tuple(_id(topic) for topic in topics)
    return {"connection": Integers(ZERO), "topics": Coded(ZERO, [ids])}


def topics_of(columns: Columns) -> list[str]:
    topics: list[str] = columns["topics"].value(0)
    return topics


def asked_at(windows: list[Window], most_rows: int) -> list[int]:
    """Return the number of windows until too many rows wait; empty if never."""
    known: set[int] = set()
    waiting: list[set[int]] = []
    for count, (topics, defined) in enumerate(windows, 1):
        known |= defined
        waiting += [topics] if waiting or topics - known else []
        if len(waiting) > most_rows:
            return [count]
        while waiting and not waiting[0] - known:
            waiting.pop(0)
    return []


SOME = st.sets(st.integers(1, 5))


@given(
    windows=st.lists(st.tuples(SOME, SOME), max_size=12),
    most_rows=st.integers(0, 6),
    in_memory=st.sampled_from([0, 1, 3, 100]),
)
def test_rows_wait_until_their_topics_have_names(
    windows: list[Window], most_rows: int, in_memory: int
) -> None:
    names_of_ids = {_id(topic): f"topic {topic}" for _, defined in windows for topic in defined}
    resolved: list[int] = []
    taken: list[Columns] = []

    def ask() -> dict[UUID, str]:
        resolved.append(len(taken))
        return names_of_ids

    names = TopicNames(ask)

    def parts() -> Iterator[Columns]:
        for topics, defined in windows:
            taken.append(part(topics))
            names.learn({_id(topic): f"topic {topic}" for topic in defined})
            yield taken[-1]

    expected = [
        [names_of_ids.get(_id(topic), str(_id(topic))) for topic in topics] for topics, _ in windows
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_resolution, "MEMORY_ROWS", in_memory)
        waiting = resolve_late_names(parts(), names, most_rows)
        assert [topics_of(each) for each in waiting] == expected
    assert resolved == asked_at(windows, most_rows)
    assert not names.can_read_ahead


def test_no_row_waits_without_a_source_of_names() -> None:
    parts = iter([part({1}), part({2})])
    each = resolve_late_names(parts, TopicNames())
    assert topics_of(next(each)) == [str(_id(1))]
    assert len(list(parts)) == 1


@pytest.mark.thinned(2)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_capture_is_read_once_or_twice_for_the_same_rows(
    jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Capture] = []
    read_names = Capture.read_names

    def counted(capture: Capture) -> dict[UUID, str]:
        opened.append(capture)
        return read_names(capture)

    monkeypatch.setattr(Capture, "read_names", counted)

    def exchanges() -> polars.DataFrame:
        return Capture(CAPTURES, Options(window_bytes=3000, jobs=jobs)).exchanges()

    once = exchanges()
    assert not opened
    monkeypatch.setattr(topic_resolution.resolve_late_names, "__defaults__", (0,))
    twice = exchanges()
    assert len(opened) == 1
    assert once.equals(twice)


def test_waiting_rows_do_not_keep_their_window_in_memory() -> None:
    window = np.arange(9)
    waits, defines = part({1}), part(set())
    waits["connection"] = Integers(window[:1])
    waits["client"] = waits["broker"] = Coded(window[3:4], "abcd")
    waits["api"] = Coded(np.array([NONE]), [])
    waits["latency_ms"] = Milliseconds(window[4:5])
    names = TopicNames(dict)

    def parts() -> Iterator[Columns]:
        yield waits
        names.learn({_id(1): "one"})
        yield defines

    first, _ = resolve_late_names(parts(), names)
    assert isinstance(first["connection"], Integers)
    assert isinstance(first["client"], Coded)
    assert isinstance(first["broker"], Coded)
    assert first["client"].codes is first["broker"].codes
    assert first["client"].codes.dtype == np.int64
    assert [first["connection"].value(0), first["client"].value(0)] == [0, "d"]
    assert first["api"].value(0) is None
    assert first["latency_ms"].value(0) == 4e-6
    assert not np.shares_memory(first["connection"].values, window)


def test_waiting_windows_are_limited_by_rows() -> None:
    rows = np.zeros(3, np.int64)
    resolved: list[int] = []

    def parts() -> Iterator[Columns]:
        for topic in (1, 2, 3):
            ids = (_id(topic),)
            yield {"connection": Integers(rows), "topics": Coded(rows, [ids])}
            resolved.append(topic)
            names.learn({_id(topic): "named"})

    names = TopicNames(lambda: pytest.fail("few rows waited"))
    assert sum(len(each["topics"]) for each in resolve_late_names(parts(), names, max_rows=6)) == 9
    assert resolved == [1, 2, 3]
