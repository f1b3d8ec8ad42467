"""A sample of the keys of produced records."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import numpy as np

from advise.evidence.call_tallies import PRODUCE
from advise.evidence.window_rows import WindowRows
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.records.record_windows import record_parts
from dissector.engine.tables.column_types import Coded, Columns, Slices, row_count, select_rows
from dissector.engine.tables.exchange_table import Ints

_OF_TOPIC, _MAX_REQUESTS, _MAX_RECORDS = 64, 512, 40_000
"""Produce requests sampled of a topic in a window, of a window, records of the whole capture."""

_MAX_OF_WINDOW, _MAX_KEYS, _MAX_KEY_BYTES = 4_000, 20_000, 256
"""Records counted of a window; distinct keys; bytes that a key is counted by."""


_NO_NAMES = TopicNames()
"""Topics are counted by id where requests have one, as in other totals: no name is looked for."""


class KeySample:
    """
    Keys of records in evenly spaced Produce requests of each topic.

    Attributes:
        counts: Number of records by number of the topic and key.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, bytes]] = Counter()
        self._records = 0

    def add(self, window: WindowRows) -> None:
        """Add a sample of a window."""
        table = window.table
        rows = np.flatnonzero(table.api_key == PRODUCE)
        if not len(rows) or self._records >= _MAX_RECORDS:
            return
        chosen = _spread(rows, window.known.topics[rows])
        left = _MAX_OF_WINDOW
        for part in record_parts(table.rows(chosen), _NO_NAMES, lambda topic: False):
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
        keys = columns["key"]
        assert isinstance(keys, Slices)
        topics = _topic_numbers(window, columns)
        rows = np.flatnonzero((topics >= 0) & (keys.start >= 0))
        self._records += len(topics)
        pairs = zip(topics[rows].tolist(), keys.contents(rows), strict=True)
        for topic, key in pairs:
            place = topic, (key or b"")[:_MAX_KEY_BYTES]
            if place in self.counts or len(self.counts) < _MAX_KEYS:
                self.counts[place] += 1


def _spread(rows: Ints, topics: Ints) -> Ints:
    """Return evenly spaced rows of each topic, in order; a small one beside large ones has some."""
    order = np.argsort(topics, kind="stable")
    _, first, count = np.unique(topics[order], return_index=True, return_counts=True)
    place = np.arange(len(rows)) - np.repeat(first, count)
    step = np.repeat(-(-count // _OF_TOPIC), count)
    chosen = np.sort(rows[order[place % step == 0]])
    return chosen[:: -(-len(chosen) // _MAX_REQUESTS)]


def _topic_numbers(window: WindowRows, columns: Columns) -> Ints:
    """Return the number of each record's topic, by its name or id; -1 without both."""
    names, ids = columns["topic"], columns["topic_id"]
    assert isinstance(names, Coded)
    assert isinstance(ids, Coded)
    number = window.names.topics.number
    by_name = [number(name) if name is not None else -1 for name in names.values]
    by_id = [number(UUID(topic_id)) if topic_id is not None else -1 for topic_id in ids.values]
    has_name = names.codes >= 0
    found = np.full(len(has_name), -1)
    found[has_name] = np.array(by_name, np.int64)[names.codes[has_name]]
    has_id = ~has_name & (ids.codes >= 0)
    found[has_id] = np.array(by_id, np.int64)[ids.codes[has_id]]
    return found
