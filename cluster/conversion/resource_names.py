"""Live names of topics, groups and transactional ids, and topic ids."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from cluster.fields.kafka_enums import INTERNAL_TOPICS

NO_ID = UUID(int=0)


ANY = "*"
"""The wildcard for all names in ACLs."""


class NameMap:
    """
    Name mapping of a run, in both directions.

    Args:
        topic_map: Captured topic -> live topic.
        prefix: Prefix of all names of topics, groups and transactional ids except those in the map.
        copy: Number of the pass; passes from 1 on have separate names.
    """

    def __init__(
        self, topic_map: Mapping[str, str] | None = None, prefix: str = "", copy: int = 0
    ) -> None:
        self.prefix = f"{prefix}copy{copy}-" if copy else prefix
        self._topics = dict(topic_map or {})
        if copy:
            self._topics = {old: f"copy{copy}-{new}" for old, new in self._topics.items()}
        self._back = {new: old for old, new in reversed(self._topics.items())}

    @property
    def has_changes(self) -> bool:
        """Whether any name changes."""
        return bool(self.prefix or self._topics)

    def topic(self, name: str) -> str:
        """Return the live name of a topic."""
        if not name or name in INTERNAL_TOPICS or name == ANY:
            return name
        return self._topics.get(name) or self.prefix + name

    def captured_topic(self, name: str) -> str:
        """Return the captured name of a live topic."""
        if not name or name in INTERNAL_TOPICS or name == ANY:
            return name
        return self._back.get(name) or name.removeprefix(self.prefix)

    def prefixed(self, name: str) -> str:
        """Return the live name of a group or transactional id."""
        return self.prefix + name if name and name != ANY else name

    def unprefixed(self, name: str) -> str:
        """Return the captured name of a live group or transactional id."""
        return name.removeprefix(self.prefix) if name else name

    def pattern(self, pattern: str) -> str:
        """Return a regular expression for the prefixed names from one for the captured names."""
        if not pattern or not self.prefix:
            return pattern
        anchor = "^" * pattern.startswith("^")
        return f"{anchor}{re.escape(self.prefix)}(?:{pattern[len(anchor) :]})"

    def captured_pattern(self, pattern: str) -> str:
        """Return the original regular expression of `pattern`."""
        anchor = "^" * pattern.startswith("^")
        start = f"{anchor}{re.escape(self.prefix)}(?:"
        if not self.prefix or not pattern.startswith(start) or not pattern.endswith(")"):
            return pattern
        return anchor + pattern[len(start) : -1]


class TopicDirectory(Protocol):
    """A directory of topic ids, such as a `Topology` of the target."""

    def topic_id(self, name: str) -> UUID | None:
        """Return the id of a topic, or None."""

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id, or None."""


@dataclass(slots=True)
class TopicIds:
    """
    Topic ids of the capture or the target, as learned from messages; the newest wins.

    Attributes:
        directory: Another directory: first choice for ids, fallback for names.
    """

    directory: TopicDirectory | None = None
    _ids: dict[str, UUID] = field(default_factory=dict)
    _names: dict[UUID, str] = field(default_factory=dict)

    def learn(self, names: Mapping[UUID, str]) -> None:
        """Learn topic ids and their names."""
        for topic_id, name in names.items():
            self._ids[name] = topic_id
            self._names[topic_id] = name

    def forget(self, name: str) -> None:
        """Forget the id of a deleted topic; the id keeps its name."""
        self._ids.pop(name, None)

    def topic_id(self, name: str) -> UUID | None:
        """Return the id of a topic, or None."""
        found = self.directory.topic_id(name) if self.directory else None
        return self._ids.get(name) if found is None else found

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id, or None."""
        known = self._names.get(topic_id)
        return self.directory.topic_name(topic_id) if known is None and self.directory else known


def share_key(key: str, group: Callable[[str], str], topic: Callable[[UUID], UUID]) -> str:
    """Map the parts of a share partition's coordinator key (`group:topic id:partition`)."""
    name, *rest = key.rsplit(":", 2)
    if len(rest) != 2:
        return key
    try:
        captured = UUID(bytes=_decoded(rest[0]))
    except ValueError:
        return key
    return f"{group(name)}:{_encoded(topic(captured))}:{rest[1]}"


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "==")


def _encoded(topic_id: UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
