"""
Which topic has which id: learned from every message that has both, also from later ones.

Since KIP-516 a request may name a topic by its id alone. The names stand in other messages, mostly
Metadata responses, perhaps later in the capture. When the first id without a name comes up, the
rest of the capture is asked once (`read_all`); what is nameless then has no name in this capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

import numpy as np

from dissector.engine.tables.exchange_table import Ints
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.facts import CLUSTER_METADATA, CLUSTER_METADATA_ID, carries_topic_names

Topics: TypeAlias = tuple[str | UUID, ...]
"""Names of topics, and ids that have no name beside them."""


class TopicIdName(NamedTuple):
    """
    The name of a topic id, told by an exchange.

    Attributes:
        row: Of the exchange in its window.
        topic_id: The id.
        name: Its name.
    """

    row: int
    topic_id: UUID
    name: str


class TopicNames:
    """
    Topic ids and their names.

    Attributes:
        by_id: The names by id.
        is_rereadable: Whether the capture can be read for names before it is read for rows.
    """

    def __init__(self, read_all: Callable[[], dict[UUID, str]] | None = None) -> None:
        """Create the table; `read_all` reads all of a capture that can be read twice."""
        self.by_id = {CLUSTER_METADATA_ID: CLUSTER_METADATA}
        self.is_rereadable = read_all is not None
        self._read_all = read_all

    @property
    def can_read_ahead(self) -> bool:
        """Whether names may still come from what was not read yet."""
        return self._read_all is not None

    def learn(self, names: dict[UUID, str]) -> None:
        """Take note of names; an id keeps the first, as topics are never renamed."""
        for topic_id, name in names.items():
            self.by_id.setdefault(topic_id, name)

    def find_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id; None where no name is to be had."""
        if topic_id not in self.by_id:
            self.read_ahead()
        return self.by_id.get(topic_id)

    def read_ahead(self) -> None:
        """Learn all names that the capture tells, if it can be asked and was not."""
        if self._read_all is not None:
            ask, self._read_all = self._read_all, None
            self.learn(ask())

    def mark_complete(self) -> None:
        """Take note that all the capture tells was learned: there is nothing to ask."""
        self._read_all = None

    def name(self, topic: str | UUID) -> str:
        """Return the name of a topic; the canonical text of its id where no name is to be had."""
        return topic if isinstance(topic, str) else self.find_name(topic) or str(topic)


@per_schemas
def may_define_names(api_key: int, api_version: int) -> bool:
    """Tell whether a request or its response can say which topic id has which name."""
    found = api(api_key)
    if found is None:
        return False
    schemas = found.request, found.response
    read_as = [(schema, schema.closest_version(api_version)) for schema in schemas]
    return any(as_ is not None and carries_topic_names(schema, as_) for schema, as_ in read_as)


def name_defining_rows(api_key: Ints, api_version: Ints) -> Ints:
    """Return the rows of exchanges that may tell names of topic ids, by API and version of each."""
    kinds, which = np.unique(np.stack((api_key, api_version)), axis=1, return_inverse=True)
    tells = [key >= 0 and may_define_names(key, version) for key, version in kinds.T.tolist()]
    return np.flatnonzero(np.array(tells, np.bool_)[which.ravel()])


def resolve_in_order(
    column: Ints, lists: list[Topics], told: Sequence[TopicIdName], names: TopicNames
) -> None:
    """
    Put names in the place of ids, as far as they are told up to each row.

    Args:
        column: Of each row of a window, the index of its topics; changed where a list stands for
            different names in different rows.
        lists: The topics; what is nameless becomes the text of its id.
        told: The names that the window tells, by row; of an id the first counts.
        names: What was known before the window.
    """
    by_id: dict[UUID, list[TopicIdName]] = {}
    for each in told:
        by_id.setdefault(each.topic_id, []).append(each)
    order = np.argsort(column, kind="stable")
    bounds = np.searchsorted(column[order], np.arange(len(lists) + 1))
    for number, topics in enumerate(lists[:]):
        ids = [topic for topic in topics if isinstance(topic, UUID)]
        rows = order[bounds[number] : bounds[number + 1]]
        if not ids or not len(rows):
            continue
        news = sorted({by_id[topic_id][0].row for topic_id in ids if topic_id in by_id})
        into = number
        for piece in np.split(rows, np.searchsorted(rows, news)):
            if not len(piece):
                continue
            past = _NamesAtRow(by_id, int(piece[0]), names)
            if into == len(lists):
                lists.append(())
            lists[into] = tuple(dict.fromkeys(map(past.name, topics)))
            column[piece] = into
            into = len(lists)


class _NamesAtRow(NamedTuple):
    """What is known of topic ids at one row of a window."""

    told: dict[UUID, list[TopicIdName]]
    row: int
    names: TopicNames

    def name(self, topic: str | UUID) -> str:
        """Return the name of a topic, or the text of its id."""
        told = self.told.get(topic, []) if isinstance(topic, UUID) else []
        is_new = topic not in self.names.by_id and bool(told) and told[0].row <= self.row
        return told[0].name if is_new else self.names.name(topic)
