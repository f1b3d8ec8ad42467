"""
Lag of groups over time: the high watermark less the committed offset, as both change.

Committed offsets, and the high watermarks in Fetch responses of any client, give its changes. At
the end of a capture the lag equals that of `kafkashark groups`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import ANSWERED, NONE, Exchanges, Ints
from dissector.summary.group_events import Committed, Topic, TransactionEnded
from dissector.summary.group_messages import OFFSET_APIS, group_events
from dissector.summary.high_watermarks import Marks, read_marks
from dissector.summary.transactional_commits import TransactionalCommits

MAX_PLACES = 100_000
"""Maximum number of partitions of all groups with a lag; further ones have none."""

_BEFORE = -(2**62)
"""Time of the values from before a window."""


class Place(NamedTuple):
    """A partition of a group."""

    group: str
    topic: str
    partition: int


class LagPoints(NamedTuple):
    """
    Changes of lag in a window, in time order.

    Attributes:
        place: Index into `GroupLags.places`.
        time_ns: Time of the response that shows the change.
        row: Row of that exchange in the window.
        lag: Lag of the partition; NONE if it is no longer known.
        committed: Its committed offset; NONE if it is unknown.
        end: Its high watermark; NONE if it is unknown.
        total: Lag of the group: the sum of its partitions.
    """

    place: Ints
    time_ns: Ints
    row: Ints
    lag: Ints
    committed: Ints
    end: Ints
    total: Ints


class _Values(NamedTuple):
    """Committed offsets, or high watermarks, of places; a row each."""

    place: Ints
    time_ns: Ints
    row: Ints
    value: Ints


class GroupLags:
    """
    The lag of all groups, window by window.

    Args:
        all_changes: Also return points at which the offsets change, and the lag does not.

    Attributes:
        places: The partitions of groups, in the order of their first committed offsets.
    """

    def __init__(self, *, all_changes: bool = False) -> None:
        self._all_changes = all_changes
        self.places: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self._places_at: dict[tuple[str, int], list[int]] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._end: list[int] = []
        self._committed: list[int] = []
        self._groups: dict[str, int] = {}
        self._group_of: list[int] = []
        self._totals: list[int] = []
        self._unnamed: dict[UUID, set[int]] = {}
        self._commits = TransactionalCommits()

    def read(
        self,
        table: Exchanges,
        exchange: Callable[[int], Exchange],
        name: Callable[[Topic], str],
        chosen: Ints | None = None,
    ) -> LagPoints:
        """
        Read the next window.

        Args:
            table: The exchanges.
            exchange: Returns one as an object, by row.
            name: Returns the name of a topic id.
            chosen: The only rows whose committed offsets count; None for all.
        """
        self._name_topics(name)
        rows = np.flatnonzero(
            np.isin(table.api_key, list(OFFSET_APIS)) & (table.status == ANSWERED)
        )
        if chosen is not None:
            rows = np.intersect1d(rows, chosen, assume_unique=True)
        committed = self._read_commits(table, rows, exchange, name)
        marks = read_marks(table, exchange)
        ends = self._read_ends(table, marks, name)
        points = self._merged(ends, committed)
        self._add_ends(marks, name)
        return points

    def _read_commits(
        self,
        table: Exchanges,
        rows: Ints,
        exchange: Callable[[int], Exchange],
        name: Callable[[Topic], str],
    ) -> _Values:
        """Return the committed offsets of a window."""
        found: list[tuple[int, int, int, int]] = []
        times = table.response.time_ns
        for row in rows.tolist():
            for event in group_events(exchange(row)):
                if not isinstance(event, Committed | TransactionEnded):
                    continue
                for each in self._commits.settle(event):
                    for (topic, partition), offset in each.offsets.items():
                        key = self._key(topic, partition, name)
                        number = self._number(Place(each.group_id, *key))
                        value = NONE if offset is None else offset
                        if number is not None:
                            found.append((number, int(times[row]), row, value))
        return _Values(*np.array(found, np.int64).reshape(-1, 4).T)

    def _name_topics(self, name: Callable[[Topic], str]) -> None:
        """Name the places of topics whose ids had no name before; live captures learn them late."""
        for topic_id in [each for each in self._unnamed if name(each) != str(each)]:
            for partition in self._unnamed.pop(topic_id):
                before, after = (str(topic_id), partition), (name(topic_id), partition)
                if before in self._ends:
                    self._ends[after] = self._ends.pop(before)
                for number in self._places_at.pop(before, []):
                    place = self.places[number]._replace(topic=after[0])
                    if place not in self._numbers:
                        self.places[number] = place
                        self._numbers[place] = number
                        self._places_at.setdefault(after, []).append(number)

    def _key(self, topic: Topic, partition: int, name: Callable[[Topic], str]) -> tuple[str, int]:
        """Return name and partition; remember an id without a name."""
        found = name(topic)
        if isinstance(topic, UUID) and found == str(topic) and len(self._unnamed) < MAX_PLACES:
            self._unnamed.setdefault(topic, set()).add(partition)
        return found, partition

    def _number(self, place: Place) -> int | None:
        """Return the number of a place; None beyond the limit."""
        number = self._numbers.get(place)
        if number is None and len(self.places) < MAX_PLACES:
            number = self._numbers[place] = len(self.places)
            self.places.append(place)
            self._places_at.setdefault(place[1:], []).append(number)
            group = self._groups.setdefault(place.group, len(self._groups))
            self._group_of.append(group)
            if group == len(self._totals):
                self._totals.append(0)
            self._end.append(self._ends.get(place[1:], NONE))
            self._committed.append(NONE)
        return number

    def _read_ends(self, table: Exchanges, marks: Marks, name: Callable[[Topic], str]) -> _Values:
        """Return the high watermarks of a window, for each group with an offset there."""
        codes, found = distinct(marks.topic << 32 | marks.partition & 0xFFFFFFFF)
        keys = ((name(marks.topics[each >> 32]), each & 0xFFFFFFFF) for each in found.tolist())
        places = [self._places_at.get(key, []) for key in keys]
        counts = np.array([len(each) for each in places], np.int64)
        flat = np.array([number for each in places for number in each], np.int64)
        repeats = counts[codes] if len(codes) else codes
        at = np.repeat(np.arange(len(codes)), repeats)
        nth = np.arange(len(at)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        place = flat[(np.cumsum(counts) - counts)[codes[at]] + nth] if len(at) else at
        row = marks.row[at]
        return _Values(place, table.response.time_ns[row], row, marks.offset[at])

    def _add_ends(self, marks: Marks, name: Callable[[Topic], str]) -> None:
        """Keep the last high watermarks, for groups that commit later."""
        codes, found = distinct(marks.topic << 32 | marks.partition & 0xFFFFFFFF)
        last = np.zeros(len(found), np.int64)
        last[codes] = np.arange(
            len(codes)
        )  # of several values for one place numpy assigns the last
        for each, offset in zip(found.tolist(), marks.offset[last].tolist(), strict=True):
            key = self._key(marks.topics[each >> 32], each & 0xFFFFFFFF, name)
            if key in self._ends or len(self._ends) < MAX_PLACES:
                self._ends[key] = offset

    def _merged(self, ends: _Values, committed: _Values) -> LagPoints:
        """Return the points at which a lag changes."""
        known, _ = distinct(np.concatenate((ends.place, committed.place)))[::-1]
        before = np.full(len(known), _BEFORE, np.int64)
        parts = (
            _Values(known, before, before, np.array(self._end, np.int64)[known]),
            _Values(known, before, before, np.array(self._committed, np.int64)[known]),
            ends,
            committed,
        )
        is_end = np.repeat((True, False, True, False), [len(each.place) for each in parts])
        place, time_ns, row, value = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((row, time_ns, place))
        place, time_ns, row, value = (each[order] for each in (place, time_ns, row, value))
        is_end = is_end[order]
        # Each place begins with both values from before, so none is taken from another place.
        end = value[_last(is_end)]
        offset = value[_last(~is_end)]
        lag = np.where((end == NONE) | (offset == NONE), NONE, np.maximum(0, end - offset))
        is_last = np.append(np.diff(place) != 0, True)[: len(place)]
        for at, number in zip(
            np.flatnonzero(is_last).tolist(), place[is_last].tolist(), strict=True
        ):
            self._end[number], self._committed[number] = int(end[at]), int(offset[at])
        former = _former(lag)
        differs = lag != former
        if self._all_changes:
            differs |= (end != _former(end)) | (offset != _former(offset))
        changed = np.flatnonzero((time_ns != _BEFORE) & differs)
        changed = changed[np.lexsort((row[changed], time_ns[changed]))]
        step = _known(lag[changed]) - _known(former[changed])
        place, time_ns, row, lag, offset, end = (
            each[changed] for each in (place, time_ns, row, lag, offset, end)
        )
        return LagPoints(place, time_ns, row, lag, offset, end, self._add_totals(place, step))

    def _add_totals(self, place: Ints, step: Ints) -> Ints:
        """Return the lag of the group after each change, in time order."""
        group = np.array(self._group_of, np.int64)[place]
        order = np.argsort(group, kind="stable")
        group, step = group[order], step[order]
        is_first = np.append(True, np.diff(group) != 0)[: len(group)]
        first = np.flatnonzero(is_first)
        sums = np.cumsum(step)
        before = np.array(self._totals, np.int64)[group[first]] - (sums - step)[first]
        sums += before[np.cumsum(is_first) - 1] if len(first) else 0
        for at, number in zip(
            (np.append(first[1:], len(sums)) - 1).tolist(), group[first].tolist(), strict=False
        ):
            self._totals[number] = int(sums[at])
        totals = np.empty(len(sums), np.int64)
        totals[order] = sums
        return totals


def _last(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints:
    """Return, for each position, the last one at or before it that is set."""
    found: Ints = np.maximum.accumulate(np.where(mask, np.arange(len(mask)), 0))
    return found


def _former(values: Ints) -> Ints:
    """Return, for each row, the value of the row before."""
    return np.concatenate((values[:1], values[:-1]))


def _known(lag: Ints) -> Ints:
    """Return lags with 0 for unknown ones."""
    return np.where(lag == NONE, 0, lag)
