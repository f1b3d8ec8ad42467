"""
Names of topic ids, learned from every message that has both, also from later ones.

Since KIP-516 a request may refer to a topic by its id alone. The names are in other messages,
mostly Metadata responses, perhaps later in the capture. At the first id without a name the rest of
the capture is read ahead once (`read_ahead`); an id that is unnamed then has no name in this
capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

import numpy as np

from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import Ints
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.facts import CLUSTER_METADATA, CLUSTER_METADATA_ID, carries_topic_names

Topics: TypeAlias = tuple[str | UUID, ...]
"""Names of topics, and ids without a name in the same message."""


_VERSION_BITS, _LEAST_VERSION = 16, 1 << 15
_MOST_UNNAMED = 10_000
"""Ids without a name that are kept: a damaged capture may have any number."""


class TopicIdName(NamedTuple):
    """
    The name of a topic id, as an exchange defines it.

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
        unnamed: Ids that were asked for without a known name, some of many.
    """

    def __init__(self, read_all: Callable[[], dict[UUID, str]] | None = None) -> None:
        """Start with the names that never change; `read_all` reads all of a rereadable capture."""
        self.by_id = {CLUSTER_METADATA_ID: CLUSTER_METADATA}
        self.is_rereadable = read_all is not None
        self.unnamed: set[UUID] = set()
        self._read_all = read_all

    @property
    def can_read_ahead(self) -> bool:
        """Whether names may follow in an unread part of the capture."""
        return self._read_all is not None

    def learn(self, names: Mapping[UUID, str]) -> None:
        """Add names; an id keeps its first name, as topics are never renamed."""
        for topic_id, name in names.items():
            self.by_id.setdefault(topic_id, name)

    def find_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id; None if the capture has no name."""
        if topic_id not in self.by_id:
            self.read_ahead()
        name = self.by_id.get(topic_id)
        if name is None and len(self.unnamed) < _MOST_UNNAMED:
            self.unnamed.add(topic_id)
        return name

    def read_ahead(self) -> None:
        """Learn all names of the capture, if it can be read again and was not."""
        if self._read_all is not None:
            read_all, self._read_all = self._read_all, None
            self.learn(read_all())

    def mark_complete(self) -> None:
        """Record that all names of the capture are known, so that reading ahead is unnecessary."""
        self._read_all = None

    def name(self, topic: str | UUID) -> str:
        """Return the name of a topic, or the canonical text of an id without a name."""
        return topic if isinstance(topic, str) else self.find_name(topic) or str(topic)


@per_schemas
def may_define_names(api_key: int, api_version: int) -> bool:
    """Return whether a request or its response can have both an id and a name of a topic."""
    found = api(api_key)
    if found is None:
        return False
    schemas = found.request, found.response
    read_as = [(schema, schema.closest_version(api_version)) for schema in schemas]
    return any(as_ is not None and carries_topic_names(schema, as_) for schema, as_ in read_as)


def name_defining_rows(api_key: Ints, api_version: Ints) -> Ints:
    """Return the rows of exchanges that may define names of topic ids."""
    index, kinds = distinct(api_key << _VERSION_BITS | api_version + _LEAST_VERSION)
    defines = [
        kind >= 0
        and may_define_names(kind >> _VERSION_BITS, kind % (1 << _VERSION_BITS) - _LEAST_VERSION)
        for kind in kinds.tolist()
    ]
    return np.flatnonzero(np.array(defines, np.bool_)[index])


def resolve_in_order(
    column: Ints, lists: list[Topics], definitions: Sequence[TopicIdName], names: TopicNames
) -> None:
    """
    Replace topic ids by names defined before each row.

    Args:
        column: Of each row of a window, the index of its topics; changed where a list means
            different names in different rows.
        lists: The topics; ids without a name become text.
        definitions: The names that the window defines, by row; the first of an id counts.
        names: The names known before the window.
    """
    by_id: dict[UUID, list[TopicIdName]] = {}
    for definition in definitions:
        by_id.setdefault(definition.topic_id, []).append(definition)
    order = np.argsort(column, kind="stable")
    bounds = np.searchsorted(column[order], np.arange(len(lists) + 1))
    for number, topics in enumerate(lists[:]):
        ids = [topic for topic in topics if isinstance(topic, UUID)]
        rows = order[bounds[number] : bounds[number + 1]]
        if not ids or not len(rows):
            continue
        definition_rows = sorted({by_id[topic_id][0].row for topic_id in ids if topic_id in by_id})
        target = number
        for same_names in np.split(rows, np.searchsorted(rows, definition_rows)):
            if not len(same_names):
                continue
            names_at_row = _NamesAtRow(by_id, int(same_names[0]), names)
            if target == len(lists):
                lists.append(())
            lists[target] = tuple(dict.fromkeys(map(names_at_row.name, topics)))
            column[same_names] = target
            target = len(lists)


class _NamesAtRow(NamedTuple):
    """The known names of topic ids at one row of a window."""

    definitions: dict[UUID, list[TopicIdName]]
    row: int
    names: TopicNames

    def name(self, topic: str | UUID) -> str:
        """Return the name of a topic, or the text of its id."""
        definitions = self.definitions.get(topic, []) if isinstance(topic, UUID) else []
        is_new = (
            topic not in self.names.by_id and bool(definitions) and definitions[0].row <= self.row
        )
        return definitions[0].name if is_new else self.names.name(topic)
