"""Produce requests in a window, by connection and hour: counts, and times in flight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, Exchanges, Ints
from timeline.events.fetch_counts import HOUR_NS, hourly_groups

PRODUCE = 0


@dataclass(frozen=True, slots=True)
class ProduceCounts:
    """
    Produce requests of a connection within an hour, answered or with acks=0.

    Attributes:
        hour: Hours since the epoch.
        first_row: Row of the first request in the window.
        last_row: Row of the last request.
        unacknowledged: Number of requests with acks=0.
        answered: Rows of answered requests, in the order of their responses.
        begin_ns: Completion times of these requests.
        end_ns: Completion times of their responses.
    """

    hour: int
    first_row: int
    last_row: int
    unacknowledged: int
    answered: Ints
    begin_ns: Ints
    end_ns: Ints


def produce_counts(table: Exchanges) -> list[ProduceCounts]:
    """Return the Produce requests of a window."""
    is_answered = table.status == ANSWERED
    is_produce = (table.api_key == PRODUCE) & (is_answered | (table.status == NO_RESPONSE))
    rows = np.flatnonzero(is_produce)
    if not len(rows):
        return []
    end_ns = np.where(is_answered, table.response.time_ns, table.request.time_ns)
    groups, group = hourly_groups(end_ns[rows] // HOUR_NS, table.connection[rows])
    order = np.argsort(group, kind="stable")
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    found = []
    for hour, of_group in zip(groups, np.split(rows[order], cuts), strict=True):
        answered = of_group[is_answered[of_group]]
        found.append(
            ProduceCounts(
                hour,
                int(of_group[0]),
                int(of_group[-1]),
                len(of_group) - len(answered),
                answered,
                table.request.time_ns[answered],
                table.response.time_ns[answered],
            )
        )
    return found
