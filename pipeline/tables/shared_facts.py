"""
What parts of a collection tell one another: names of topics, and who is a broker.

Both travel as pairs of texts: the id of a topic and its name; `broker` and a place, `doubt` and the
first packet of a connection (`broker_facts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dissector.capture.addresses import endpoint_text
from dissector.capture.columns import Int64s
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Reading
from pipeline.tables.table_schemas import FACTS_SCHEMA

ID_MARK = "\0"
"""Stands before the text of an id in the place of a name, until all names are known."""


class DeferredNames(TopicNames):
    """
    Names of topic ids as far as they were told here; the others are marked.

    Nothing is settled, and nobody is asked: what this part lacks another one may tell.

    Attributes:
        published: The names that `new_names` has told.
    """

    def __init__(self) -> None:
        super().__init__()
        self.published = dict(self.by_id)

    @property
    def can_read_ahead(self) -> bool:
        """Say that names may still come."""
        return True

    def find_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id; None where it was not told here."""
        return self.by_id.get(topic_id)

    def name(self, topic: str | UUID) -> str:
        """Return the name of a topic, or its id behind a mark."""
        if isinstance(topic, str):
            return topic
        return self.by_id.get(topic) or ID_MARK + str(topic)

    def new_names(self, packet: int) -> Iterator[pa.RecordBatch]:
        """Yield what was told since the last time, as of a packet."""
        news = {key: name for key, name in self.by_id.items() if key not in self.published}
        self.published.update(news)
        if news:
            rows = [
                {"topic_id": str(key), "name": name, "packet": packet} for key, name in news.items()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=FACTS_SCHEMA)


_BROKER, _DOUBT = "broker ", "doubt "

_BETWEEN = "\n"
"""Stands between two places."""


def broker_facts(reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yield the brokers that a reading, which is at its end, knows; and who may be one."""
    networks, talks = reading.source.networks, reading.correlator
    rows = [
        {"topic_id": f"{_BROKER}{networks[network]} {endpoint_text(*end)}", "name": "", "packet": 0}
        for network, end in sorted(talks.brokers)
    ]
    numbers = np.array(sorted(talks.doubtful_sides), np.int64)
    known = reading.streams.connections
    for number, network, first, ends in zip(
        numbers.tolist(),
        known.columns(numbers).network.tolist(),
        known.first_packets(numbers).tolist(),
        reading.endpoints_of(numbers),
        strict=True,
    ):
        side = talks.doubtful_sides[number]
        places = (f"{networks[network]} {ends[each]}" for each in (side, 1 - side))
        doubt = _BETWEEN.join(places)
        rows.append({"topic_id": f"{_DOUBT}{first}", "name": doubt, "packet": 0})
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=FACTS_SCHEMA)


def has_doubts(told: pa.RecordBatch) -> bool:
    """Tell whether it depends on other parts which rows of this one are true."""
    return any(key.startswith(_DOUBT) for key in told.column("topic_id").to_pylist())


def lasting_facts(told: pa.Table) -> pa.Table:
    """Return what later rows may depend on too: who is in doubt is asked once."""
    return told.filter(pc.invert(pc.starts_with(told["topic_id"], _DOUBT)))


def non_broker_connections(told: Mapping[str, str]) -> Int64s:
    """
    Return the first packets of connections that are with no broker, as was assumed, in order.

    Args:
        told: What all parts have told.
    """
    firsts = []
    for key, places in told.items():
        if key.startswith(_DOUBT):
            it, other = (f"{_BROKER}{place}" in told for place in places.split(_BETWEEN))
            if not it or other:
                firsts.append(int(key[len(_DOUBT) :]))
    return np.array(sorted(firsts), np.int64)


def topic_names(told: Mapping[str, str]) -> dict[str, str]:
    """Return the names of topics by their ids, out of what all parts have told."""
    others = _BROKER, _DOUBT
    return {key: name for key, name in told.items() if not key.startswith(others)}


def merge_facts(told: Iterable[pa.RecordBatch]) -> dict[str, str]:
    """Return what all parts have told; of an id the first name in the collection holds."""
    rows = [row for batch in told for row in batch.to_pylist()]
    rows.sort(key=lambda row: (row["packet"], row["name"]), reverse=True)
    return {row["topic_id"]: row["name"] for row in rows}
