"""
Which topic has which id: learned from every message that has both, also from later ones.

Since KIP-516 a request may name a topic by its id alone. The names stand in other messages, mostly
Metadata responses, perhaps later in the capture. When the first id without a name comes up, the
rest of the capture is asked once (`ask`); what is nameless then has no name in this capture.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from uuid import UUID

from dissector.protocol.apis import api
from dissector.protocol.facts import tells_names


class TopicNames:
    """
    Topic ids and their names.

    Attributes:
        known: The names by id.
    """

    def __init__(self, ask: Callable[[], dict[UUID, str]] | None = None) -> None:
        """Begin with nothing known; `ask` reads the whole capture, where it can be read twice."""
        self.known: dict[UUID, str] = {}
        self._ask = ask

    def learn(self, names: dict[UUID, str]) -> None:
        """Take note of names."""
        self.known.update(names)

    def known_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id; None where no name is to be had."""
        if topic_id not in self.known and self._ask is not None:
            ask, self._ask = self._ask, None
            self.known.update(ask())
        return self.known.get(topic_id)

    def name(self, topic: str | UUID) -> str:
        """Return the name of a topic; the canonical text of its id where no name is to be had."""
        return topic if isinstance(topic, str) else self.known_name(topic) or str(topic)


@lru_cache(maxsize=4096)
def may_tell_names(api_key: int, api_version: int) -> bool:
    """Tell whether a request or its response can say which topic id has which name."""
    found = api(api_key)
    return found is not None and any(
        api_version in schema.versions and tells_names(schema, api_version)
        for schema in (found.request, found.response)
    )
