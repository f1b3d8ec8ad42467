"""
Duplicate items in the lists of a body.

An item is identified by the fields that the schema declares (`key=True`, Kafka's mapKey), else by
the fields that usually name an item. Messages often list a topic several times, each time with
other partitions, so in such lists only the partitions are compared.

Source: mapKey in Kafka's message definitions; FetchResponse.java (toMessage) for split topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeAlias

from dissector.protocol.facts import NO_ID
from dissector.protocol.schema import Field, Schema, split_tagged

_KEY_FIELDS = frozenset(
    [
        "partition_index",
        "partition",
        "partition_id",
        "index",
        "node_id",
        "broker_id",
        "id",
        "member_id",
        "group_instance_id",
        "group_id",
        "api_key",
        "transactional_id",
        "resource_type",
        "resource_name",
        "producer_id",
        "first_offset",
        "source",
        "user",
        "log_dir",
        "path",
        "subtopology_id",
        "batch_index",
    ]
)
"""Fields that identify an item, where the schema does not declare which field does."""

_TOPIC_KEYS = ("name", "topic", "topic_name", "topic_id", "key")
"""The first non-null of these identifies a topic, a setting, a coordinator."""

_MAY_REPEAT = frozenset(
    ["acknowledge_types", "old_style_offsets", "log_dirs", "directories", "replica_directory_id"]
)
"""Lists of plain values that may contain duplicates."""

_SCALAR_TYPES = frozenset(("int8", "int16", "int32", "int64", "string"))

DuplicateItem: TypeAlias = tuple[str, Any]
"""The path of an item that occurs in its list a second time, and its name."""

_Finder: TypeAlias = Callable[
    [Any, str, tuple[Any, ...], "set[tuple[Any, ...]]"], Iterator[DuplicateItem]
]
"""Checks a struct: takes its value, path and scope, and the keys seen before."""


def find_duplicates(schema: Schema, version: int, body: Any) -> list[DuplicateItem]:
    """Return the duplicate items in a body."""
    look = _message_finder(schema, version)
    return [] if look is None else list(look(body, "", (), set()))


@cache
def _message_finder(schema: Schema, version: int) -> _Finder | None:
    return _struct_finder(schema.fields, version)


def _struct_finder(fields: tuple[Field, ...], version: int) -> _Finder | None:
    """Return the check of the lists in a struct; None where it has none."""
    plain, tagged = split_tagged(fields, version)
    looks = [(each.name, look) for each in plain + tagged if (look := _field_finder(each, version))]
    if not looks:
        return None

    def look_at(
        value: Any, path: str, scope: tuple[Any, ...], seen: set[tuple[Any, ...]]
    ) -> Iterator[DuplicateItem]:
        for name, look in looks:
            inner = value.get(name)
            if inner:
                yield from look(inner, f"{path}.{name}" if path else name, scope, seen)

    return look_at


def _field_finder(each: Field, version: int) -> _Finder | None:
    if each.type == "struct":
        return _struct_finder(each.fields, version)
    if each.type == "[]struct":
        return _array_finder(each, version)
    if (
        each.type.startswith("[]")
        and each.type[2:] in _SCALAR_TYPES
        and each.name not in _MAY_REPEAT
    ):
        return _find_in_values
    return None


def _find_in_values(
    values: Any, path: str, scope: tuple[Any, ...], seen: set[tuple[Any, ...]]
) -> Iterator[DuplicateItem]:
    """Check a list of plain values."""
    if not scope and len(set(values)) == len(values):
        return
    place = _path_without_indices(path)
    for at, value in enumerate(values):
        key = (place, *scope, value)
        if key in seen:
            yield f"{path}[{at}]", value
        seen.add(key)


def _path_without_indices(path: str) -> str:
    """Return a path without its indices."""
    return ".".join(part.partition("[")[0] for part in path.split("."))


def _array_finder(each: Field, version: int) -> _Finder | None:
    """Return the check of a list of structs."""
    inner = _struct_finder(each.fields, version)
    name_of = _key_reader(each.fields, version)
    if name_of is None:
        return inner and _each_element_finder(inner)
    keep = not _may_be_split(each.fields, version)

    def look_at(
        values: Any, path: str, scope: tuple[Any, ...], seen: set[tuple[Any, ...]]
    ) -> Iterator[DuplicateItem]:
        place = _path_without_indices(path)
        for at, value in enumerate(values):
            name = name_of(value)
            key = (place, *scope, name)
            if keep and key in seen:
                yield f"{path}[{at}]", name[0] if len(name) == 1 else name
                continue
            seen.add(key)
            if inner is not None:
                yield from inner(value, f"{path}[{at}]", (*scope, name), seen)

    return look_at


def _each_element_finder(inner: _Finder) -> _Finder:
    """Return the check of the structs in a list without identifying fields."""

    def look_at(
        values: Any, path: str, scope: tuple[Any, ...], seen: set[tuple[Any, ...]]
    ) -> Iterator[DuplicateItem]:
        for at, value in enumerate(values):
            yield from inner(value, f"{path}[{at}]", (*scope, at), seen)

    return look_at


def _key_reader(fields: tuple[Field, ...], version: int) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return the function that gives the name of a struct in its list; None: nothing names it."""
    there = [each for each in fields if version in each.versions]
    topic = [name for name in _TOPIC_KEYS if any(each.name == name for each in there)]
    keys = [each.name for each in there if each.key and each.name not in topic]
    if not any(each.key for each in there):
        keys = [each.name for each in there if each.name in _KEY_FIELDS]
    if not keys and not topic:
        return None

    def name(value: Any) -> tuple[Any, ...]:
        named = next((v for n in topic if (v := value.get(n)) not in (None, NO_ID)), None)
        own = tuple(value.get(key) for key in keys)
        return (named, *own) if topic else own

    return name


def _may_be_split(fields: tuple[Field, ...], version: int) -> bool:
    """Return whether items of a list may recur with other partitions."""
    there = [each for each in fields if version in each.versions]
    if any(each.key for each in there):
        return False
    return any(each.type.startswith("[]") and "partition" in each.name for each in there)
