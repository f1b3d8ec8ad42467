"""A sample of the keys of produced records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from advise.evidence.call_tallies import PRODUCE
from advise.evidence.window_rows import WindowRows
from dissector.engine.records.record_windows import record_parts
from dissector.engine.tables.column_types import Coded, Columns, Slices, row_count, select_rows

if TYPE_CHECKING:
    from dissector.engine.facts.topic_table import TopicNames

_MAX_REQUESTS, _MAX_RECORDS = 64, 40_000
"""Produce requests sampled of a window, and records of the whole capture."""

_MAX_OF_WINDOW, _MAX_KEYS, _MAX_KEY_BYTES = 4_000, 20_000, 256
"""Records counted of a window; distinct keys; bytes that a key is counted by."""


class KeySample:
    """
    Keys of records in evenly spaced Produce requests.

    Attributes:
        counts: Number of records by number of the topic and key.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, bytes]] = Counter()
        self._records = 0

    def add(self, window: WindowRows, names: TopicNames) -> None:
        """Add a sample of a window."""
        table = window.table
        rows = np.flatnonzero(table.api_key == PRODUCE)
        if not len(rows) or self._records >= _MAX_RECORDS:
            return
        chosen = rows[:: -(-len(rows) // _MAX_REQUESTS)]
        left = _MAX_OF_WINDOW
        for part in record_parts(table.rows(chosen), names, lambda topic: False):
            count = row_count(part.columns)
            if not count:
                continue
            step = -(-count // left)
            columns = select_rows(part.columns, slice(None, None, step))
            self._count(window, columns)
            left -= row_count(columns)
            if left <= 0:
                break

    def of_topic(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return number and key of each topic's keys, the most frequent first."""
        found: dict[int, list[tuple[int, bytes]]] = {}
        for (topic, key), count in self.counts.most_common():
            found.setdefault(topic, []).append((count, key))
        return found

    def _count(self, window: WindowRows, columns: Columns) -> None:
        topics, keys = columns["topic"], columns["key"]
        assert isinstance(topics, Coded)
        assert isinstance(keys, Slices)
        numbers = window.names.topics.numbers(topics.values)
        rows = np.flatnonzero((topics.codes >= 0) & (keys.start >= 0))
        self._records += len(topics)
        pairs = zip(numbers[topics.codes[rows]].tolist(), keys.contents(rows), strict=True)
        for topic, key in pairs:
            place = topic, (key or b"")[:_MAX_KEY_BYTES]
            if place in self.counts or len(self.counts) < _MAX_KEYS:
                self.counts[place] += 1
