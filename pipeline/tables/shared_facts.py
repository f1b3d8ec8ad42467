"""
Facts that the parts of a collection share: names of topics, and the addresses of brokers.

Facts are pairs of texts: the id of a topic and its name; `broker` with an address; `doubt` with the
first packet of a connection, and its two addresses, one of them presumably a broker
(`broker_facts`).
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
"""Prefix of an id's text in place of a name, until all names are known."""


class DeferredNames(TopicNames):
    """
    Names of topic ids known to this part; other ids are marked.

    Other parts may know more names, but are not consulted.

    Attributes:
        published: The names that `new_names` has yielded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.published = dict(self.by_id)

    @property
    def can_read_ahead(self) -> bool:
        """Return true: further names may follow."""
        return True

    def find_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id; None if this part does not know it."""
        return self.by_id.get(topic_id)

    def name(self, topic: str | UUID) -> str:
        """Return the name of a topic, or its id behind a mark."""
        if isinstance(topic, str):
            return topic
        return self.by_id.get(topic) or ID_MARK + str(topic)

    def new_names(self, packet: int) -> Iterator[pa.RecordBatch]:
        """Yield the names that are new since the last call, as of a packet."""
        news = {key: name for key, name in self.by_id.items() if key not in self.published}
        self.published.update(news)
        if news:
            rows = [
                {"topic_id": str(key), "name": name, "packet": packet} for key, name in news.items()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=FACTS_SCHEMA)


_BROKER, _DOUBT = "broker ", "doubt "

_SEPARATOR = "\n"
"""Separates two addresses."""


def broker_facts(reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yield the brokers that a reading has found, and the connections it is not sure about."""
    networks, correlator = reading.source.networks, reading.correlator
    rows = [
        {"topic_id": f"{_BROKER}{networks[network]} {endpoint_text(*end)}", "name": "", "packet": 0}
        for network, end in sorted(correlator.brokers)
    ]
    numbers = np.array(sorted(correlator.doubtful_sides), np.int64)
    connections = reading.streams.connections
    for number, network, first, ends in zip(
        numbers.tolist(),
        connections.columns(numbers).network.tolist(),
        connections.first_packets(numbers).tolist(),
        reading.endpoints.of_all(numbers),
        strict=True,
    ):
        side = correlator.doubtful_sides[number]
        addresses = (f"{networks[network]} {ends[each]}" for each in (side, 1 - side))
        doubt = _SEPARATOR.join(addresses)
        rows.append({"topic_id": f"{_DOUBT}{first}", "name": doubt, "packet": 0})
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=FACTS_SCHEMA)


def has_doubts(facts: pa.RecordBatch) -> bool:
    """Return whether the validity of this part's rows depends on other parts."""
    return any(key.startswith(_DOUBT) for key in facts.column("topic_id").to_pylist())


def split_doubts(facts: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the facts for all parts, and the doubts, which concern only the part's own rows."""
    is_doubt = pc.starts_with(facts.column("topic_id"), _DOUBT)
    return facts.filter(pc.invert(is_doubt)), facts.filter(is_doubt)


def lasting_facts(facts: pa.Table) -> pa.Table:
    """Return the facts that later rows may depend on too: a doubt concerns only its own batch."""
    return facts.filter(pc.invert(pc.starts_with(facts["topic_id"], _DOUBT)))


def non_broker_connections(facts: Mapping[str, str]) -> Int64s:
    """
    Return the first packets of connections to a server mistaken for a broker, in order.

    Args:
        facts: The facts of all parts.
    """
    first_packets = []
    for key, addresses in facts.items():
        if key.startswith(_DOUBT):
            is_broker, is_other_broker = (
                f"{_BROKER}{address}" in facts for address in addresses.split(_SEPARATOR)
            )
            if not is_broker or is_other_broker:
                first_packets.append(int(key[len(_DOUBT) :]))
    return np.array(sorted(first_packets), np.int64)


def topic_names(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the names of topics by their ids, from the facts of all parts."""
    other_prefixes = _BROKER, _DOUBT
    return {key: name for key, name in facts.items() if not key.startswith(other_prefixes)}


def first_facts(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Return each fact of some parts once, for each id that of the first packet."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    rows.sort(key=lambda row: (row["packet"], row["name"]), reverse=True)
    found = {row["topic_id"]: row for row in rows}
    return pa.RecordBatch.from_pylist([*found.values()], FACTS_SCHEMA)


def merge_facts(batches: Iterable[pa.RecordBatch]) -> dict[str, str]:
    """Return the facts of all parts; for each id the first name in the collection wins."""
    return {row["topic_id"]: row["name"] for row in first_facts(batches).to_pylist()}
