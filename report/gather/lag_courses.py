"""The lag of groups over time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dissector.engine.reading.capture import Capture, Window
from dissector.filter import Filter
from dissector.summary.groups_reader import GroupsReader
from dissector.summary.lag_intervals import MOST_CHANGES, LagIntervals
from dissector.view.text.value_text import time_text

INTERVAL_S = 1.0
"""Length of an interval, unless there are too many changes."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LagCourse:
    """
    The lag of a group, as it changed.

    Attributes:
        group: The group.
        time_ns: Ends of the intervals with a change.
        lag: The lag then; None if it is unknown.
    """

    group: str
    time_ns: list[int]
    lag: list[int | None]


class LagCourses:
    """
    Reads the lag of groups window by window.

    Args:
        capture: The capture.
        chosen: Passes the messages with committed offsets that count; None for all.
    """

    def __init__(self, capture: Capture, chosen: Filter | None) -> None:
        self._lags = LagIntervals(capture, INTERVAL_S, chosen, _time, most=MOST_CHANGES)
        self._groups = GroupsReader(capture, chosen, self._lags.count_members)

    def add(self, window: Window) -> None:
        """Read a window; windows must be passed in order."""
        self._groups.add(window)
        self._lags.add(window)

    def courses(self) -> list[LagCourse]:
        """Return the lag of each group over time, that with the highest lag first."""
        found: dict[str, LagCourse] = {}
        for row in self._sections["lags"]:
            course = found.setdefault(row["group"], LagCourse(row["group"], [], []))
            course.time_ns.append(int(row["time"]))
            course.lag.append(row["lag"])
        return sorted(found.values(), key=lambda each: (-_highest(each.lag), each.group))

    def groups(self) -> list[Row]:
        """Return the last lag of each group, and the highest; the largest first."""
        return self._last("lags", ("group",))

    def partitions(self) -> list[Row]:
        """Return the last lag of each partition of a group, and the highest; the largest first."""
        return self._last("partition_lags", ("group", "topic", "partition"))

    @cached_property
    def _sections(self) -> Mapping[str, list[Row]]:
        self._groups.sections()  # counts the members at the end
        return self._lags.sections()

    def _last(self, section: str, names: tuple[str, ...]) -> list[Row]:
        found: dict[tuple[Any, ...], Row] = {}
        for row in self._sections[section]:
            key = tuple(row[name] for name in names)
            before = found.get(key, {"highest": None, "at": ""})
            is_higher = row["lag"] is not None and row["lag"] > (before["highest"] or -1)
            most = row["lag"], _second(int(row["time"]))
            highest, at = most if is_higher else (before["highest"], before["at"])
            found[key] = {**row, "highest": highest, "at": at}
        rows: Iterator[Row] = (row for row in found.values() if row["highest"] is not None)
        return sorted(rows, key=lambda row: (-(row["lag"] or 0), -row["highest"]))


def _highest(lags: list[int | None]) -> int:
    return max((lag for lag in lags if lag is not None), default=0)


def _time(time_ns: int, column: str) -> str:
    """Return a time: a number in its column, a text in a note."""
    return str(time_ns) if column == "time" else _second(time_ns)


def _second(time_ns: int) -> str:
    """Return a time in UTC without its fraction, as intervals are of whole seconds."""
    return time_text(time_ns).partition(".")[0] + "Z"
