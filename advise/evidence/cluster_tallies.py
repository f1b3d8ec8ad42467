"""Totals of metadata and logins, and the number of partitions of topics."""

from __future__ import annotations

import numpy as np

from advise.evidence.call_tallies import METADATA
from advise.evidence.tally import Tally
from advise.evidence.window_rows import WindowRows
from dissector.engine.fields.message_fields import MessageFields

SASL_AUTHENTICATE = 36

_MOST_READ = 8
"""Metadata responses of a window that are read for numbers of partitions, the largest ones."""


class ClusterTallies:
    """
    Totals of Metadata and SaslAuthenticate.

    Attributes:
        metadata: Metadata by client, connection and number of topics in the response.
        lifetimes: Logins with a lifetime, by client, connection and lifetime.
        partitions: Number of a topic -> most partitions that it was seen with.
    """

    def __init__(self) -> None:
        self.metadata = Tally(("client", "connection", "topics"), ("count", "bytes"))
        self.lifetimes = Tally(("client", "connection", "lifetime_ms"), ("count",))
        self.partitions: dict[int, int] = {}

    def add(self, window: WindowRows) -> None:
        """Add a window."""
        self._add_metadata(window)
        fields = MessageFields(
            window.table, SASL_AUTHENTICATE, "response", ("session_lifetime_ms",)
        )
        if len(fields):
            lifetime = fields.each("session_lifetime_ms", 0)
            chosen = lifetime > 0
            rows = fields.rows[chosen]
            ones = np.ones(len(rows), np.int64)
            self.lifetimes.add(window.of(rows, lifetime_ms=lifetime[chosen], count=ones))

    def _add_metadata(self, window: WindowRows) -> None:
        table = window.table
        fields = MessageFields(table, METADATA, "response", ("topics",))
        if not len(fields):
            return
        rows, topics = fields.rows, np.maximum(fields.each("topics", 0), 0)
        size = np.maximum(table.response.size[rows], 0)
        ones = np.ones(len(rows), np.int64)
        self.metadata.add(window.of(rows, topics=topics, count=ones, bytes=size))
        largest = np.sort(rows[np.argsort(size, kind="stable")[-_MOST_READ:]])
        paths = ("topics.name", "topics.partitions")
        read = MessageFields(table, METADATA, "response", paths, largest)
        places = read.at("topics.partitions")
        codes, names = read.texts(read.around(places, "topics.name"))
        for code, count in zip(codes.tolist(), read.value(places).tolist(), strict=True):
            name = names[code]
            if name is not None:
                topic = window.names.topics.number(name)
                self.partitions[topic] = max(self.partitions.get(topic, 0), count)
