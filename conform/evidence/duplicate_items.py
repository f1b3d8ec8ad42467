"""
Duplicate items in the lists of a body.

An item is identified by its key fields: those declared by the schema (`key=True`, Kafka's mapKey),
else fields that usually identify an item. Messages often contain a topic several times, each time
with other partitions, so in such lists only the partitions are compared.

Source: mapKey in Kafka's message definitions; FetchResponse.java (toMessage) for split topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeAlias

from conform.registry.rule_screen import FieldPlace
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
"""Fields that identify an item if the schema declares no key."""

_TOPIC_KEYS = ("name", "topic", "topic_name", "topic_id", "key")
"""The first of these that is not null identifies a topic, a setting, a coordinator."""

_MAY_REPEAT = frozenset(
    ["acknowledge_types", "old_style_offsets", "log_dirs", "directories", "replica_directory_id"]
)
"""Lists of scalars that may contain duplicates."""

_SCALAR_TYPES = frozenset(("int8", "int16", "int32", "int64", "string"))

DuplicateItem: TypeAlias = tuple[str, Any]
"""The path of an item that occurs in its list a second time, and its key."""

_Finder: TypeAlias = Callable[
    [Any, str, tuple[Any, ...], "set[tuple[Any, ...]]"], Iterator[DuplicateItem]
]
"""Searches a value; arguments: the value, its path and scope, and the keys found before."""


def find_duplicates(schema: Schema, version: int, body: Any) -> list[DuplicateItem]:
    """Return the duplicate items in a body."""
    find = _message_finder(schema, version)
    return [] if find is None else list(find(body, "", (), set()))


def distinct_key_fields(place: FieldPlace) -> tuple[str, ...]:
    """Return fields of the items of a list: `find_duplicates` finds nothing if they differ."""
    declared = place.declared
    if not declared.fields:
        is_compared = place.type[2:] in _SCALAR_TYPES and declared.name not in _MAY_REPEAT
        return ("",) if is_compared else ()
    topic_keys, keys = _key_names(declared.fields, place.version)
    return (*topic_keys[:1], *keys)


@cache
def _message_finder(schema: Schema, version: int) -> _Finder | None:
    return _struct_finder(schema.fields, version)


def _struct_finder(fields: tuple[Field, ...], version: int) -> _Finder | None:
    """Return the finder of duplicates in the lists of a struct; None if it has no lists."""
    untagged, tagged = split_tagged(fields, version)
    finders = [
        (each.name, finder)
        for each in untagged + tagged
        if (finder := _field_finder(each, version))
    ]
    if not finders:
        return None

    def find(
        value: Any, path: str, scope: tuple[Any, ...], seen: set[tuple[Any, ...]]
    ) -> Iterator[DuplicateItem]:
        for name, find_in_field in finders:
            field_value = value.get(name)
            if field_value:
                field_path = f"{path}.{name}" if path else name
                yield from find_in_field(field_value, field_path, scope, seen)

    return find


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
    """Find duplicates in a list of scalars."""
    if not scope and len(set(values)) == len(values):
        return
    list_path = _path_without_indices(path)
    for index, value in enumerate(values):
        key = (list_path, *scope, value)
        if key in seen:
            yield f"{path}[{index}]", value
        seen.add(key)


def _path_without_indices(path: str) -> str:
    """Return a path without its indices."""
    return ".".join(part.partition("[")[0] for part in path.split("."))


def _array_finder(each: Field, version: int) -> _Finder | None:
    """Return the finder of duplicates in a list of structs."""
    find_in_struct = _struct_finder(each.fields, version)
    key_of = _key_reader(each.fields, version)
    if key_of is None:
        return find_in_struct and _each_element_finder(find_in_struct)
    is_unique = not _may_be_split(each.fields, version)

    def find(
        values: Any, path: str, scope: tuple[Any, ...], seen: set[tuple[Any, ...]]
    ) -> Iterator[DuplicateItem]:
        list_path = _path_without_indices(path)
        for index, value in enumerate(values):
            name = key_of(value)
            key = (list_path, *scope, name)
            if is_unique and key in seen:
                yield f"{path}[{index}]", name[0] if len(name) == 1 else name
                continue
            seen.add(key)
            if find_in_struct is not None:
                yield from find_in_struct(value, f"{path}[{index}]", (*scope, name), seen)

    return find


def _each_element_finder(find_in_struct: _Finder) -> _Finder:
    """Return the finder for a list of structs without a key: it searches each struct."""

    def find(
        values: Any, path: str, scope: tuple[Any, ...], seen: set[tuple[Any, ...]]
    ) -> Iterator[DuplicateItem]:
        for index, value in enumerate(values):
            yield from find_in_struct(value, f"{path}[{index}]", (*scope, index), seen)

    return find


def _key_reader(fields: tuple[Field, ...], version: int) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return the function that reads the key of a struct; None if it has no key."""
    topic_keys, keys = _key_names(fields, version)
    if not keys and not topic_keys:
        return None

    def key_of(value: Any) -> tuple[Any, ...]:
        key = tuple(value.get(name) for name in keys)
        if not topic_keys:
            return key
        topic = next(
            (v for name in topic_keys if (v := value.get(name)) not in (None, NO_ID)), None
        )
        return (topic, *key)

    return key_of


def _key_names(fields: tuple[Field, ...], version: int) -> tuple[list[str], list[str]]:
    """Return the fields of which the first that is not null is a key, and the other keys."""
    declared = [each for each in fields if version in each.versions]
    topic_keys = [name for name in _TOPIC_KEYS if any(each.name == name for each in declared)]
    keys = [each.name for each in declared if each.key and each.name not in topic_keys]
    if not any(each.key for each in declared):
        # A struct with such a name, as `source` of a topology, is not a key.
        keys = [each.name for each in declared if each.name in _KEY_FIELDS and not each.fields]
    return topic_keys, keys


def _may_be_split(fields: tuple[Field, ...], version: int) -> bool:
    """Return whether items of a list may occur again with other partitions."""
    declared = [each for each in fields if version in each.versions]
    if any(each.key for each in declared):
        return False
    return any(each.type.startswith("[]") and "partition" in each.name for each in declared)
