"""Counts of Fetch exchanges in a window, by connection and hour: total, empty, lag."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np

from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import BASE_OFFSET, Batches
from dissector.engine.records.record_locator import RecordFields, locate_records
from dissector.engine.tables.exchange_table import ANSWERED, NONE, Exchanges, Ints

FETCH, HOUR_NS = 1, 3600 * 10**9

_LAST_OFFSET_DELTA_AT = 23
"""Position of the last offset delta in a batch of magic 2, an int32."""


class Lag(NamedTuple):
    """
    Distance of a client to the high watermark of a partition, after Fetch responses with records.

    Attributes:
        topic: Topic name or id.
        partition: Partition number.
        last: Lag after the last Fetch.
        most: Highest lag.
        most_row: Row of the Fetch with the highest lag.
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
        lags: Lag of partitions with records.
    """

    hour: int
    first_row: int
    last_row: int
    count: int
    empty: int
    empty_ns: int
    lags: list[Lag]


def fetch_counts(table: Exchanges, has_error: Ints) -> list[FetchCounts]:
    """Return the counts of a window; `has_error` is nonzero for exchanges with an error."""
    is_fetch = (table.api_key == FETCH) & (table.status == ANSWERED) & (has_error == 0)
    rows = np.flatnonzero(is_fetch)
    if not len(rows):
        return []
    chosen = table.rows(rows)
    hours = chosen.response.time_ns // HOUR_NS
    keys = np.stack((hours, chosen.connection), axis=1)
    groups, inverse = np.unique(keys, axis=0, return_inverse=True)
    group = inverse.ravel()
    is_full, lags = _read_lags(chosen, rows, group)
    took_ns = chosen.response.time_ns - chosen.request.time_ns
    found = []
    for number, hour in enumerate(groups[:, 0].tolist()):
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
                lags[number],
            )
        )
    return found


def field_lags(table: Exchanges, fields: RecordFields, found: Batches) -> tuple[Ints, Ints]:
    """
    Return the lag after fetched `records` fields: distance of their end to the high watermark.

    Args:
        table: The exchanges.
        fields: The `records` fields.
        found: Batches in the fields.

    Returns:
        Numbers of fields that end in a batch of magic 2, and their lags; NONE if unknown.
    """
    is_last = np.append(np.diff(found.field) != 0, True)[: len(found)]
    last = np.flatnonzero(is_last & (found.magic == 2))
    field = found.field[last]
    delta_at = found.start[last] + _LAST_OFFSET_DELTA_AT
    low = table.int16_at(delta_at + 2) & 0xFFFF
    next_offset = found.column(BASE_OFFSET)[last] + (table.int16_at(delta_at) << 16 | low) + 1
    high_watermark = fields.high_watermark[field]
    lag = np.where(high_watermark < 0, NONE, np.maximum(0, high_watermark - next_offset))
    return field, lag


def _read_lags(
    chosen: Exchanges, rows: Ints, group: Ints
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], dict[int, list[Lag]]]:
    """Return whether each fetch has records, and the lags of each group."""
    is_full = np.zeros(len(rows), np.bool_)
    fields = locate_records(chosen)
    is_full[fields.row] = is_full[fields.undecoded] = True
    found = find_batches(
        chosen.data, chosen.carry_over, fields.start, fields.length, fields.may_be_cut
    )
    field, lag = field_lags(chosen, fields, found)
    known: dict[int, dict[tuple[int, int], Lag]] = defaultdict(dict)
    columns = (group[fields.row[field]], fields.topic[field], fields.partition[field], lag)
    values = zip(*(each.tolist() for each in columns), rows[fields.row[field]], strict=True)
    for number, topic, partition, behind, row in values:
        if behind != NONE:
            before = known[number].get((topic, partition))
            most, most_row = behind, int(row)
            if before is not None and before.most >= behind:
                most, most_row = before.most, before.most_row
            known[number][topic, partition] = Lag(
                fields.topics[topic], partition, behind, most, most_row
            )
    lags = defaultdict(list, {number: list(each.values()) for number, each in known.items()})
    return is_full, lags
