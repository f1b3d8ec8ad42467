"""
Flows from a Produce to the Fetch exchanges that read its batches.

Brokers store batches unchanged except for the base offset, so topic, partition and base offset
identify a batch in both exchanges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

import numpy as np

from dissector.engine.records.batch_table import Batches
from dissector.engine.records.record_locator import RecordFields
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from timeline.output.perfetto.protobuf import Mask

PRODUCE, FETCH = 0, 1

MAX_FLOWS = 16
"""Maximum number of batches with a flow per exchange."""

MAX_PRODUCED = 200_000
"""Maximum number of retained produced batches; the newest are retained."""


class Flows(NamedTuple):
    """
    Flows of the exchanges in a window: ids, and masks of exchanges.

    Attributes:
        begun: Flows that begin at an exchange, a Produce.
        ended: Flows that end at an exchange, a Fetch.
    """

    begun: list[tuple[Ints, Mask]]
    ended: list[tuple[Ints, Mask]]


class FlowFinder:
    """Finds flows, window by window."""

    def __init__(self, topic_name: Callable[[str | UUID], str]) -> None:
        """Start; `topic_name` returns the name for a topic id."""
        self._topic_name = topic_name
        self._produced: deque[Ints] = deque()
        self._count = 0

    def find(self, table: Exchanges, fields: RecordFields, found: Batches) -> Flows:
        """
        Find the flows of exchanges.

        Args:
            table: The exchanges.
            fields: The `records` fields.
            found: Batches in the fields.
        """
        topics = np.array([self._topic_hash(each) for each in fields.topics], np.int64)
        is_written = (table.api_key[fields.row] == PRODUCE) & (fields.base_offset >= 0)
        written = np.flatnonzero(is_written)
        ids = _mix(topics[fields.topic[written]], fields.partition[written])
        ids = _mix(ids, fields.base_offset[written])
        self._retain(ids)
        begun = _by_exchange(fields.row[written], ids, len(table))
        is_fetched = (found.magic == 2) & (table.api_key[fields.row[found.field]] == FETCH)
        field = found.field[is_fetched]
        ids = _mix(topics[fields.topic[field]], fields.partition[field])
        ids = _mix(ids, found.base_offset[is_fetched])
        known = np.isin(ids, np.concatenate(self._produced)) if self._produced else ids != ids
        return Flows(begun, _by_exchange(fields.row[field][known], ids[known], len(table)))

    def _retain(self, ids: Ints) -> None:
        if not len(ids):
            return
        self._produced.append(ids[-MAX_PRODUCED:])
        self._count += len(self._produced[-1])
        while self._count > MAX_PRODUCED:
            self._count -= len(self._produced.popleft())

    def _topic_hash(self, topic: str | UUID) -> int:
        name = self._topic_name(topic).encode("utf-8", "surrogateescape")
        return int.from_bytes(blake2b(name, digest_size=8).digest(), "big", signed=True)


def _mix(values: Ints, more: Ints) -> Ints:
    """Return hashes of pairs of integers (the finalizer of splitmix64)."""
    mixed = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + more.astype(np.uint64)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ mixed >> np.uint64(31)).astype(np.int64)


def _by_exchange(row: Ints, ids: Ints, count: int) -> list[tuple[Ints, Mask]]:
    """Return the n-th id of each of `count` exchanges, for each n; `row` is sorted."""
    starts = np.flatnonzero(np.diff(row, prepend=NONE))
    position = np.arange(len(row)) - np.repeat(starts, np.diff(starts, append=len(row)))
    found = []
    for number in range(min(MAX_FLOWS, int(position.max(initial=-1)) + 1)):
        chosen = position == number
        values, mask = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        values[row[chosen]], mask[row[chosen]] = ids[chosen], True
        found.append((values, mask))
    return found
