"""Counts of Fetch exchanges in a window, by connection and hour: total, empty, positions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np

from dissector.engine.records.batch_table import Batches
from dissector.engine.records.record_locator import RecordFields, find_field_batches, locate_records
from dissector.engine.tables.exchange_table import ANSWERED, NONE, Exchanges, Ints

FETCH, HOUR_NS = 1, 3600 * 10**9

_LAST_OFFSET_DELTA_AT = 23
"""Position of the last offset delta in a batch of magic 2, an int32."""


class Position(NamedTuple):
    """
    How far a client has fetched a partition: records behind the high watermark.

    It is no lag of a group, which depends on committed offsets: clients fetch ahead.

    Attributes:
        topic: Topic name or id.
        partition: Partition number.
        last: Records behind after the last Fetch with records.
        most: Most records behind.
        most_row: Row of that Fetch.
    """

    topic: str | UUID
    partition: int
    last: int
    most: int
    most_row: int


@dataclass(frozen=True, slots=True)
class FetchCounts:
    """
    Fetch exchanges without errors of a connection within an hour.

    Attributes:
        hour: Hours since the epoch.
        first_row: Row of the first exchange in the window.
        last_row: Row of the last exchange.
        count: Number of exchanges.
        empty: Number of responses without records.
        empty_ns: Total latency of these (long polls).
        positions: Of partitions with records.
    """

    hour: int
    first_row: int
    last_row: int
    count: int
    empty: int
    empty_ns: int
    positions: list[Position]


def fetch_counts(table: Exchanges, has_error: Ints) -> list[FetchCounts]:
    """Return the counts of a window; `has_error` is nonzero for exchanges with an error."""
    is_fetch = (table.api_key == FETCH) & (table.status == ANSWERED) & (has_error == 0)
    rows = np.flatnonzero(is_fetch)
    if not len(rows):
        return []
    chosen = table.rows(rows)
    hours = chosen.response.time_ns // HOUR_NS
    groups, group = hourly_groups(hours, chosen.connection)
    is_full, positions = _read_positions(chosen, rows, group)
    took_ns = chosen.response.time_ns - chosen.request.time_ns
    found = []
    for number, hour in enumerate(groups):
        at = np.flatnonzero(group == number)
        empty = at[~is_full[at]]
        found.append(
            FetchCounts(
                hour,
                int(rows[at[0]]),
                int(rows[at[-1]]),
                len(at),
                len(empty),
                int(took_ns[empty].sum()),
                positions[number],
            )
        )
    return found


def hourly_groups(hours: Ints, connections: Ints) -> tuple[list[int], Ints]:
    """Return the hour of each group of exchanges of a connection, in order, and of each row its."""
    size = int(connections.max()) + 1
    first = int(hours.min())
    keys, group = np.unique((hours - first) * size + connections, return_inverse=True)
    return (keys // size + first).tolist(), group.ravel()


def records_behind(table: Exchanges, fields: RecordFields, found: Batches) -> tuple[Ints, Ints]:
    """
    Return how far fetched `records` fields end behind the high watermark.

    Args:
        table: The exchanges.
        fields: The `records` fields.
        found: Batches in the fields.

    Returns:
        Numbers of fields that end in a batch of magic 2, and their distances; NONE if unknown.
    """
    is_last = np.append(np.diff(found.field) != 0, True)[: len(found)]
    last = np.flatnonzero(is_last & (found.magic == 2))
    field = found.field[last]
    delta_at = found.start[last] + _LAST_OFFSET_DELTA_AT
    low = table.int16_at(delta_at + 2) & 0xFFFF
    next_offset = found.base_offset[last] + (table.int16_at(delta_at) << 16 | low) + 1
    high_watermark = fields.high_watermark[field]
    behind = np.where(high_watermark < 0, NONE, np.maximum(0, high_watermark - next_offset))
    return field, behind


def _read_positions(
    chosen: Exchanges, rows: Ints, group: Ints
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], dict[int, list[Position]]]:
    """Return whether each fetch has records, and the positions of each connection and hour."""
    is_full = np.zeros(len(rows), np.bool_)
    fields = locate_records(chosen)
    is_full[fields.row] = is_full[fields.undecoded] = True
    found = find_field_batches(chosen, fields)
    field, distance = records_behind(chosen, fields, found)
    known: dict[int, dict[tuple[int, int], Position]] = defaultdict(dict)
    columns = (group[fields.row[field]], fields.topic[field], fields.partition[field], distance)
    values = zip(*(each.tolist() for each in columns), rows[fields.row[field]], strict=True)
    for number, topic, partition, behind, row in values:
        if behind != NONE:
            before = known[number].get((topic, partition))
            most, most_row = behind, int(row)
            if before is not None and before.most >= behind:
                most, most_row = before.most, before.most_row
            known[number][topic, partition] = Position(
                fields.topics[topic], partition, behind, most, most_row
            )
    positions = {number: list(each.values()) for number, each in known.items()}
    return is_full, defaultdict(list, positions)
