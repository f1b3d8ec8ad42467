"""Array elements by their key fields, in captured values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from cluster.conversion.resource_names import NO_ID
from cluster.fields.field_layout import Scope, StructLayout
from dissector.protocol.field_roles import Role
from replay.mapping.id_map import IdMap

Key = tuple[Any, ...]

_Element = Mapping[str, Any]


def index_by_key(
    ids: IdMap, layout: StructLayout, elements: Sequence[_Element], scope: Scope, is_live: bool
) -> dict[Key, _Element]:
    """
    Return the elements of an array by their keys; duplicate keys get a counter.

    Args:
        ids: The id mapping.
        layout: The fields of an element.
        elements: The elements of the array.
        scope: The scope that encloses the array.
        is_live: Whether the elements come from the target.
    """
    found: dict[Key, _Element] = {}
    seen: defaultdict[Key, int] = defaultdict(int)
    for element in elements:
        key = _key(ids, layout, element, scope.inside(layout, element), is_live)
        repeats = seen[key]
        seen[key] += 1
        found[(*key, f"again {repeats}") if repeats else key] = element
    return found


def key_text(key: Key) -> str:
    """Return a key as written in paths, in which a bracket ends it: names may have any letter."""
    return ",".join(str(each) for each in key).replace("]", r"\x5d")


def _key(ids: IdMap, layout: StructLayout, element: _Element, scope: Scope, is_live: bool) -> Key:
    values: dict[str, Any] = {}
    for leaf in layout.keys:
        value = element.get(leaf.name)
        if leaf.role is Role.TOPIC_ID:
            if not values.get(Role.TOPIC):
                values[Role.TOPIC] = _topic(ids, value, is_live)
            continue
        if is_live:
            value = ids.captured(leaf.role, value, ids.captured_scope(scope))
        values[leaf.role if leaf.role is Role.TOPIC else leaf.name] = value
    return tuple(values.values())


def _topic(ids: IdMap, topic_id: UUID | None, is_live: bool) -> Any:
    """Return the captured name of a topic id; the id itself where no name is known."""
    if topic_id is None or topic_id == NO_ID:
        return topic_id
    topics = ids.live_topics if is_live else ids.captured_topics
    name = topics.topic_name(topic_id)
    if name is None:
        return topic_id
    return ids.names.captured_topic(name) if is_live else name
