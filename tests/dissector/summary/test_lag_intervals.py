"""Lag by interval: the state at the end of each interval, and what is said about it."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

from dissector.engine.reading.capture import Capture, Options
from dissector.summary.groups_reader import GroupsReader
from dissector.summary.lag_intervals import LagIntervals
from tests.dissector.summary.test_groups import Coordinator
from tests.tcp_captures import pcap_file

SECOND_NS = 1_000_000_000

Rows = list[dict[str, Any]]
State = dict[int, tuple[int | None, int | None]]
"""Partition -> committed offset, and high watermark."""


class Clocked(Coordinator):
    """Exchanges at chosen times, with the state after each."""

    def __init__(self) -> None:
        super().__init__()
        self.begin_ns = -(-self.wire.now_ns // SECOND_NS) * SECOND_NS
        self.states: list[tuple[int, State]] = []
        self._offsets: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def at(self, second: float) -> Clocked:
        """Let the next exchange begin at a time, in seconds."""
        self.wire.now_ns = self.begin_ns + round(second * SECOND_NS)
        return self

    def commits(self, partition: int, offset: int) -> None:
        """Commit an offset."""
        self.commit(partition, offset)
        self._offsets[partition] = offset
        self._keep()

    def fetches(self, partition: int, end: int) -> None:
        """Fetch, and see a high watermark."""
        self.fetch(partition, end)
        self._ends[partition] = end
        self._keep()

    def sections(
        self, interval_s: float, window_bytes: int = 1 << 20, most: int | None = None
    ) -> dict[str, Rows]:
        """Return the rows."""
        data = io.BytesIO(pcap_file(self.wire.packets))
        capture = Capture(["-"], Options(stdin=data, window_bytes=window_bytes))
        lags = LagIntervals(capture, interval_s, most=most)
        reader = GroupsReader(capture, None, lags.count_members)
        for window in capture.windows(gleaning=True):
            reader.add(window)
            lags.add(window)
        reader.sections()
        return lags.sections()

    def notes(self) -> list[str | None]:
        """Return what is said about the group in each second."""
        return [row["note"] for row in self.sections(1)["lags"]]

    def _keep(self) -> None:
        last_ns = max(each.time_ns for each in self.wire.packets if each.payload)
        state = {each: (at, self._ends.get(each)) for each, at in self._offsets.items()}
        self.states.append((last_ns, state))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window_bytes", [600, 1 << 20])
def test_rows_are_the_state_at_the_end_of_each_interval(seed: int, window_bytes: int) -> None:
    play, chance = Clocked(), random.Random(seed)
    for step in range(80):
        move = chance.choice([play.commits, play.fetches])
        play.at(0.2 + step * 0.13)
        move(chance.randrange(3), 5 * step + chance.randrange(20))
    expected: dict[tuple[int, int], tuple[int | None, int | None]] = {}
    before: State = {}
    for time_ns, state in play.states:
        for partition, values in state.items():
            if before.get(partition) != values:
                expected[(time_ns - play.begin_ns) // SECOND_NS, partition] = values
        before = state
    rows = play.sections(1, window_bytes)["partition_lags"]
    found = [(row["partition"], row["committed"], row["high_watermark"]) for row in rows]
    assert sorted(found) == sorted((partition, *each) for (_, partition), each in expected.items())
    assert len({row["time"] for row in rows}) == len({second for second, _ in expected})
    for row in rows:
        if row["high_watermark"] is not None:
            assert row["lag"] == max(0, row["high_watermark"] - row["committed"])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("window_bytes", [600, 1 << 20])
def test_with_many_changes_intervals_become_longer(window_bytes: int) -> None:
    """Until there are few; the rows are those of the longer interval from the begin."""
    play = Clocked()
    for step in range(64):
        play.at(step + 0.1).commits(step % 2, step)
        play.at(step + 0.2).fetches(step % 2, 2 * step)
    found = play.sections(1, window_bytes, most=20)
    assert 2 <= len(found["partition_lags"]) <= 20
    expected = (play.sections(length_s) for length_s in (8, 16, 32))
    assert found in list(expected)


def test_growth_has_a_begin_and_a_rate() -> None:
    play = Clocked()
    for second in range(5):
        play.at(second + 0.1).commits(0, 10 * second)
        play.at(second + 0.2).fetches(0, 40 * second)
    play.at(5.1).commits(0, 160)
    first, *_, fourth, fifth, last = play.notes()
    assert (first, last) == (None, None)
    assert fourth is not None
    assert fourth.startswith("grows by 30/s since ")
    assert fifth == fourth
    rows = play.sections(1)["lags"]
    assert [row["lag"] for row in rows] == [0, 30, 60, 90, 120, 0]
    assert [row["change_per_s"] for row in rows] == [None, 30, 30, 30, 30, -120]


def test_a_group_that_commits_no_more_is_stuck() -> None:
    play = Clocked()
    play.at(0.1).commits(0, 7)
    for second in range(4):
        play.at(second + 0.5).fetches(0, 9)
        play.at(second + 0.7).fetches(1, second)
    play.at(4.1).fetches(0, 10)
    *_, last = play.sections(1)["partition_lags"]
    assert (last["committed"], last["lag"]) == (7, 3)
    assert str(last["note"]).startswith("stuck at offset 7 and grows by 0.25/s since ")


def test_a_group_without_members_is_said_to_have_none() -> None:
    play = Clocked()
    play.at(0.1).join("a", 1, ("a",))
    play.at(0.2).commits(0, 7)
    play.at(0.3).fetches(0, 9)
    leaving = {"members": [{"member_id": "a"}]}
    play.at(1.1).exchange(13, 4, {"group_id": "billing", **leaving}, leaving)
    assert play.notes() == [None, "no member"]
    assert [row["members"] for row in play.sections(1)["lags"]] == [1, 0]
