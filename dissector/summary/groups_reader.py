"""Reads the groups of a capture, and returns the rows of the report on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.engine.fields.window_query import WindowQuery
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.summary.group_events import (
    CLASSIC,
    CONSUMER,
    Assignment,
    Committed,
    GroupEvent,
    TransactionEnded,
)
from dissector.summary.group_messages import GROUP_APIS, group_events
from dissector.summary.group_states import GroupState, GroupStates
from dissector.summary.high_watermarks import HighWatermarks, read_marks
from dissector.summary.repeated_heartbeats import RepeatedHeartbeats

if TYPE_CHECKING:
    from dissector.filter import Filter

SECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "groups": (
        "Groups",
        (
            *("group", "type", "protocol", "state", "generation", "rebalances", "assignor"),
            *("coordinator", "members", "lag"),
        ),
    ),
    "members": (
        "Members",
        (
            *("group", "member_id", "instance_id", "client_id", "client", "topics"),
            *("assignment", "leader", "left"),
        ),
    ),
    "partitions": (
        "Partitions",
        ("group", "topic", "partition", "committed", "high_watermark", "lag", "member_id"),
    ),
}
"""Section -> its heading, and the columns of its rows."""

Rows = list[dict[str, Any]]


class GroupsReader:
    """
    Reads groups window by window.

    Attributes:
        states: The groups so far.
        high_watermarks: The ends of partitions so far.
    """

    def __init__(
        self,
        capture: Capture,
        chosen: Filter | None = None,
        count_members: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """
        Begin.

        Args:
            capture: The capture.
            chosen: Passes the messages of groups that count. Its tests of time choose the Fetch
                responses too, so that offsets are compared with high watermarks of the same time.
            count_members: Gets group, number of members and time after each event of a group.
        """
        self.states = GroupStates()
        self.high_watermarks = HighWatermarks()
        self._capture = capture
        self._chosen = chosen
        self._in_time = None if chosen is None else chosen.time_filter()
        self._count_members = count_members
        self._repeated = RepeatedHeartbeats()

    def add(self, window: Window) -> None:
        """Read a window; windows must be passed in order."""
        table = window.exchanges
        if not len(table):
            return
        self._capture.known_of(window)  # learns names of topic ids
        reading, names = self._capture.reading, self._capture.names
        assert reading is not None
        for row in np.flatnonzero(np.isin(table.api_key, list(GROUP_APIS))).tolist():
            if self._repeated.is_repeated(table, row):
                continue
            exchange = reading.exchange(table, row, names)
            if self._chosen is None or self._chosen.matches(exchange):
                for event in group_events(exchange):
                    self.states.apply(event, exchange.broker)
                    self._count(event, table, row)
        rows = None
        if self._in_time is not None:
            rows = self._in_time.passing(WindowQuery(self._capture, window))
        marks = read_marks(table, lambda row: reading.exchange(table, row, names), rows)
        self.high_watermarks.add(marks)

    def sections(self) -> dict[str, Rows]:
        """Return the rows of each section, by group; call it after the last window."""
        self._capture.names.mark_complete()
        name = self._capture.names.name
        self.states.resolve(name)
        ends = {
            (name(topic), partition): offset
            for (topic, partition), offset in self.high_watermarks.by_partition.items()
        }
        found: dict[str, Rows] = {section: [] for section in SECTIONS}
        for group in sorted(self.states.groups.values(), key=lambda each: each.group_id):
            partitions = list(_partition_rows(group, ends))
            found["groups"].append(_group_row(group, partitions))
            found["members"] += _member_rows(group)
            found["partitions"] += partitions
        return {name: [_escaped(row) for row in rows] for name, rows in found.items()}

    def _count(self, event: GroupEvent, table: Exchanges, row: int) -> None:
        if self._count_members is None or isinstance(event, Committed | TransactionEnded):
            return
        group = self.states.groups[event.group_id]
        time_ns = max(int(table.request.time_ns[row]), int(table.response.time_ns[row]))
        self._count_members(group.group_id, len(group.members), time_ns)


def _group_row(group: GroupState, partitions: Rows) -> dict[str, Any]:
    lags = [row["lag"] for row in partitions if row["lag"] is not None]
    return {
        "group": group.group_id,
        "type": group.kind or None,
        "protocol": group.protocol_type,
        "state": group.state or None,
        "generation": group.generation,
        "rebalances": group.rebalances,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "members": len(group.members),
        "lag": sum(lags) if lags else None,
    }


def _member_rows(group: GroupState) -> Iterator[dict[str, Any]]:
    """Yield the members, then former members."""
    for members, left in ((group.members, False), (group.former, True)):
        for name, facts in sorted(members.items()):
            yield {
                "group": group.group_id,
                "member_id": name,
                "instance_id": facts.instance_id,
                "client_id": facts.client_id,
                "client": facts.client,
                "topics": list(facts.topics or ()),
                "assignment": _assignment_texts(facts.assignment or ()),
                "leader": name == group.leader if group.kind == CLASSIC else None,
                "left": left,
            }


def _assignment_texts(assignment: Assignment) -> list[str]:
    """Return topics with their partitions: `orders(0,1)`."""
    return [f"{topic}({','.join(map(str, numbers))})" for topic, numbers in assignment]


def _partition_rows(
    group: GroupState, ends: Mapping[tuple[str, int], int]
) -> Iterator[dict[str, Any]]:
    """Yield the partitions that are committed, or assigned to a consumer."""
    owners = {
        (str(topic), number): name
        for name, facts in group.members.items()
        for topic, numbers in facts.assignment or ()
        for number in numbers
    }
    committed = {(str(topic), number): offset for (topic, number), offset in group.offsets.items()}
    is_consumer = group.kind == CONSUMER or group.protocol_type == "consumer"
    for topic, number in sorted({*committed, *(owners if is_consumer else ())}):
        offset, end = committed.get((topic, number)), ends.get((topic, number))
        yield {
            "group": group.group_id,
            "topic": topic,
            "partition": number,
            "committed": offset,
            "high_watermark": end,
            "lag": None if offset is None or end is None else max(0, end - offset),
            "member_id": owners.get((topic, number)),
        }


def _escaped(row: dict[str, Any]) -> dict[str, Any]:
    return {name: escape_invalid_utf8(value) for name, value in row.items()}
