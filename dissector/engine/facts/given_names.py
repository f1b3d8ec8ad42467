"""
Names of topic ids that the user gives: a capture that begins midway may hold no Metadata.

They come from a list, in one of these forms, in any mixture:

- `kafka-topics.sh --describe`: `Topic: orders  TopicId: 9kHKvqmuTgOWLxX-aHCjzw  PartitionCount: 4`
- JSON, whole or by line, with objects that have a name and an id: `{"name": .., "topicId": ..}`
- lines that begin with a name and an id

An id is a UUID, or its 16 bytes in base64 for URLs, as Kafka's own tools print it.
Source: Uuid.toString in org/apache/kafka/common/Uuid.java.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any
from uuid import UUID

_ID = r"[A-Za-z0-9_-]{22}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_DESCRIBED = re.compile(rf"Topic:\s*(\S+)\s+TopicId:\s*({_ID})(?!\S)")
_LISTED = re.compile(rf"\s*([\w.-]{{1,249}})[\s,;]+({_ID})(?![^\s,;])")
_NAME_KEYS = ("topic", "name", "topicname")
_ID_KEYS = ("topicid", "id", "uuid")

_given: ContextVar[Callable[[], Mapping[UUID, str]]] = ContextVar("topic_names", default=dict)


def use_names(read: Callable[[], Mapping[UUID, str]]) -> None:
    """Add names to those of captures that are opened from now on; the first of them reads them."""
    _given.set(cache(read))


def given_names() -> Mapping[UUID, str]:
    """Return the names that were given: for new `Options`."""
    return _given.get()()


def listed_names(text: str) -> dict[UUID, str]:
    """Return the names of topic ids in a list; empty if it has no known form."""
    names: dict[UUID, str] = {}
    for name, topic_id in (*_names_in_json(text), *_names_in_lines(text)):
        found = _uuid(topic_id)
        if found is not None and found.int:
            names.setdefault(found, name)
    return names


def _names_in_lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        found = _DESCRIBED.search(line) or _LISTED.match(line)
        if found is not None:
            yield found[1], found[2]


def _names_in_json(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and ids of all objects with both; of lines that are no JSON nothing."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    whole = _json_value(text)
    waiting = list(map(_json_value, text.splitlines())) if whole is None else [whole]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            by_key = {key.lower().replace("_", ""): each for key, each in value.items()}
            name, topic_id = (
                next((by_key[key] for key in keys if isinstance(by_key.get(key), str)), None)
                for keys in (_NAME_KEYS, _ID_KEYS)
            )
            if name and topic_id:
                yield name, topic_id


def _json_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _uuid(text: str) -> UUID | None:
    try:
        if re.fullmatch(_ID, text) is None:
            return None
        return UUID(text) if len(text) > 22 else UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except ValueError:
        return None
