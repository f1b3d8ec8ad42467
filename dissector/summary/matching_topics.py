"""The topics of exchanges that a display filter is about, for answers with a row for each topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dissector.engine.tables.column_types import Coded, Columns

if TYPE_CHECKING:
    from dissector.filter import Filter

_MAX_KNOWN = 100_000
"""Maximum number of topics with a retained result."""


class MatchingTopics:
    """
    Leaves out topics that the tests of a filter exclude, of messages on several topics.

    A Metadata response with `payments` and `orders` passes `topic == payments`; its row is one of
    `payments` only. Topics stay where no single one passes, as with `topic == a && topic == b`.
    """

    def __init__(self, chosen: Filter | None) -> None:
        """Begin with the filter of the exchanges; None: all topics stay."""
        self._filter = None if chosen is None else chosen.topic_filter()
        self._known: dict[str, bool] = {}

    def of(self, columns: Columns) -> Columns:
        """Return columns of `pairs` with the matching topics only."""
        if self._filter is None:
            return columns
        topics = columns["topics"]
        assert isinstance(topics, Coded)
        return {**columns, "topics": Coded(topics.codes, list(map(self._matching, topics.values)))}

    def _matching(self, topics: Sequence[str]) -> Sequence[str]:
        return [each for each in topics if self._passes(each)] or topics

    def _passes(self, topic: str) -> bool:
        found = self._known.get(topic)
        if found is None:
            assert self._filter is not None
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._known[topic] = self._filter.matches(_OneTopic(topic))
        return found


class _OneTopic:
    """An exchange of which only a topic is known."""

    def __init__(self, topic: str) -> None:
        self._topics = [topic]

    def column(self, name: str) -> object:
        return self._topics

    def body(self, kind: str) -> Mapping[str, Any] | None:
        return None
