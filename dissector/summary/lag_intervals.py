"""
The lag of groups at the end of each interval, and what holds it up.

A row stands where something has changed: an offset of a partition, or the lag of a group. Lag is
that of `GroupLags`: the high watermark less the committed offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from dissector.engine.fields.window_query import WindowQuery
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.filter import Filter
from dissector.summary.group_lag import GroupLags, Place

LAG_SECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "lags": ("Lag of groups", ("time", "group", "lag", "change_per_s", "members", "note")),
    "partition_lags": (
        "Lag of partitions",
        (
            *("time", "group", "topic", "partition", "committed", "high_watermark", "lag"),
            *("change_per_s", "note"),
        ),
    ),
}
"""Section -> its heading, and the columns of its rows."""

MOST_CHANGES = 50_000
"""A bound for `most`: some 20 MB."""

_SECOND_NS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Rows = list[dict[str, Any]]


class _Offsets(NamedTuple):
    """What is known of a partition of a group at the end of an interval; NONE for nothing."""

    lag: int
    committed: int
    end: int


@dataclass(frozen=True, slots=True)
class _Course:
    """
    How a lag went so far.

    Attributes:
        time_ns: End of the last interval with a change.
        lag: The lag then; None if it was unknown.
        committed: The committed offset then.
        grows_since_ns: Begin of its growth in all intervals since.
        least: The lag then.
        stuck_since_ns: Since when the committed offset stays, and records are left.
    """

    time_ns: int
    lag: int | None = None
    committed: int = NONE
    grows_since_ns: int | None = None
    least: int = 0
    stuck_since_ns: int | None = None

    def later(self, time_ns: int, lag: int | None, committed: int = NONE) -> _Course:
        """Return the course after another interval."""
        step = _Course(time_ns, lag, committed)
        if lag is None or self.lag is None:
            return step
        if lag > self.lag:
            is_new = self.grows_since_ns is None
            step = replace(
                step,
                grows_since_ns=self.time_ns if is_new else self.grows_since_ns,
                least=self.lag if is_new else self.least,
            )
        if lag and committed == self.committed != NONE:
            since_ns = self.time_ns if self.stuck_since_ns is None else self.stuck_since_ns
            step = replace(step, stuck_since_ns=since_ns)
        return step

    def notes(self, interval_ns: int, clock: Callable[[int], str]) -> Iterator[str]:
        """Yield what is to be said after two intervals or more."""
        said: dict[int, list[str]] = {}
        lasts = 2 * interval_ns
        if self.stuck_since_ns is not None and self.time_ns - self.stuck_since_ns >= lasts:
            said.setdefault(self.stuck_since_ns, []).append(f"stuck at offset {self.committed}")
        if self.grows_since_ns is not None and self.lag is not None:
            length_ns = self.time_ns - self.grows_since_ns
            if length_ns >= lasts:
                rate = (self.lag - self.least) * _SECOND_NS / length_ns
                said.setdefault(self.grows_since_ns, []).append(f"grows by {rate:.3g}/s")
        for since_ns, texts in said.items():
            yield f"{' and '.join(texts)} since {clock(since_ns)}"


@dataclass(slots=True)
class _Interval:
    """What has changed in an interval: partitions by number, and numbers of members by group."""

    offsets: dict[int, _Offsets] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)

    @property
    def changes(self) -> int:
        """Their number."""
        return len(self.offsets) + len(self.members)


class LagIntervals:
    """
    The lag of all groups of a capture by interval.

    Args:
        capture: The capture.
        interval_s: Length of an interval in seconds; intervals begin at multiples of it (UTC).
        chosen: Passes the messages with committed offsets that count; None for all.
        time: Makes the text of a time, and gets the name of its column; by default date and time in
            UTC.
        most: With more changes intervals are twice as long, again and again;
            None for no limit.
    """

    def __init__(
        self,
        capture: Capture,
        interval_s: float,
        chosen: Filter | None = None,
        time: Callable[[int, str], str] | None = None,
        *,
        most: int | None = None,
    ) -> None:
        self._time = _time if time is None else partial(_call, time, "time")
        self._clock = _clock if time is None else partial(_call, time, "note")
        self._capture = capture
        self._interval_ns = max(1, round(interval_s * _SECOND_NS))
        self._chosen = chosen
        self._most = most
        self._lags = GroupLags(all_changes=True)
        self._intervals: dict[int, _Interval] = {}

    def add(self, window: Window) -> None:
        """Read a window; windows must be passed in order."""
        table, names = window.exchanges, self._capture.names
        reading = self._capture.reading
        assert reading is not None
        rows = None
        if self._chosen is not None:
            rows = self._chosen.passing(WindowQuery(self._capture, window))
        points = self._lags.read(
            table, lambda row: reading.exchange(table, row, names), names.name, rows
        )
        interval = points.time_ns // self._interval_ns
        # Of several points of a place in an interval numpy assigns the last.
        first = int(interval.min(initial=0)) if len(interval) else 0
        codes, found = distinct((interval - first) * (len(self._lags.places) + 1) + points.place)
        last = codes[: len(found)] * 0
        last[codes] = range(len(codes))
        columns = (interval, points.place, points.lag, points.committed, points.end)
        for each in zip(*(column[last].tolist() for column in columns), strict=True):
            number, place, *offsets = each
            self._interval(number).offsets[place] = _Offsets(*offsets)
        self._lengthen()

    def count_members(self, group: str, members: int, time_ns: int) -> None:
        """Take the number of members that a group has from a time on."""
        self._interval(time_ns // self._interval_ns).members[group] = members

    def sections(self) -> dict[str, Rows]:
        """Return the rows of each section in the order of time; call it after the last window."""
        found: dict[str, Rows] = {section: [] for section in LAG_SECTIONS}
        known: dict[int, int] = {}
        totals: dict[str, int] = {}
        members: dict[str, int] = {}
        courses: dict[Place | str, _Course] = {}
        for number, interval in sorted(self._intervals.items()):
            time_ns = (number + 1) * self._interval_ns
            members.update(interval.members)
            changed = set(interval.members) & totals.keys()
            by_place = {self._lags.places[each]: each for each in interval.offsets}
            for place in sorted(by_place):
                offsets = interval.offsets[by_place[place]]
                lag = None if offsets.lag == NONE else offsets.lag
                before = known.pop(by_place[place], 0)
                if lag is not None:
                    known[by_place[place]] = lag
                if lag is not None or place.group in totals:
                    totals[place.group] = totals.get(place.group, 0) + (lag or 0) - before
                    changed.add(place.group)
                at = time_ns, lag, offsets.committed
                row = self._row(courses, place, at, known_members=None)
                row["committed"] = _or_none(offsets.committed)
                row["high_watermark"] = _or_none(offsets.end)
                found["partition_lags"].append({**place._asdict(), **row})
            for group in sorted(changed):
                at = time_ns, totals[group], NONE
                row = self._row(courses, group, at, known_members=members.get(group))
                found["lags"].append({"group": group, **row})
        return {name: [_ordered(row, name) for row in rows] for name, rows in found.items()}

    def _lengthen(self) -> None:
        """Join intervals in pairs, as long as there are too many changes."""
        # Each of many places stays a change, so the length has a limit; two stay around 1970.
        while (
            self._most is not None
            and len(self._intervals) > 2
            and sum(each.changes for each in self._intervals.values()) > self._most
        ):
            self._interval_ns *= 2
            joined: dict[int, _Interval] = {}
            for number, interval in sorted(self._intervals.items()):
                into = joined.setdefault(number // 2, _Interval())
                into.offsets.update(interval.offsets)
                into.members.update(interval.members)
            self._intervals = joined

    def _interval(self, number: int) -> _Interval:
        return self._intervals.setdefault(number, _Interval())

    def _row(
        self,
        courses: dict[Place | str, _Course],
        subject: Place | str,
        at: tuple[int, int | None, int],
        *,
        known_members: int | None,
    ) -> dict[str, Any]:
        """Continue the course of a lag; return the columns that groups and partitions share."""
        time_ns, lag, committed = at
        before = courses.get(subject) or _Course(time_ns - self._interval_ns)
        course = courses[subject] = before.later(time_ns, lag, committed)
        change = None
        if lag is not None and before.lag is not None:
            change = round((lag - before.lag) * _SECOND_NS / (time_ns - before.time_ns), 3)
        notes = list(course.notes(self._interval_ns, self._clock))
        if known_members == 0 and lag:
            notes.insert(0, "no member")
        return {
            "time": self._time(time_ns),
            "lag": lag,
            "change_per_s": change,
            "members": known_members,
            "note": "; ".join(notes) or None,
        }


def _call(time: Callable[[int, str], str], column: str, time_ns: int) -> str:
    return time(time_ns, column)


def _ordered(row: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return the columns of a section in their order."""
    return {name: escape_invalid_utf8(row[name]) for name in LAG_SECTIONS[section][1]}


def _or_none(value: int) -> int | None:
    return None if value == NONE else value


def _time(time_ns: int) -> str:
    """Return the end of an interval: date and time in UTC."""
    return _moment(time_ns).strftime("%Y-%m-%d ") + _clock(time_ns)


def _clock(time_ns: int) -> str:
    moment = _moment(time_ns)
    fraction = f".{moment.microsecond // 1000:03}" if moment.microsecond else ""
    return f"{moment:%H:%M:%S}{fraction}"


def _moment(time_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_ns // 1000)
