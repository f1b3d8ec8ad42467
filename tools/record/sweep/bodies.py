"""Bodies for the sweep: encoding for any version from a superset of fields, and inspection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.facts import Facts, collect
from dissector.protocol.messages import Message
from dissector.protocol.schema import Field, Schema


def body_of(schema: Schema, version: int, fields: Mapping[str, Any]) -> bytes:
    """Return a body from fields of any version; missing fields are zero."""
    return schema.codec(version).build(_whole(schema.fields, version, fields))


def errors_of(message: Message) -> set[str]:
    """Return the names of errors in a response."""
    facts = Facts()
    if message.schema is not None and message.body is not None:
        collect(message.schema, message.api_version or 0, message.body, facts)
    return set(facts.errors)


def unknown_tags(value: Any, path: str = "") -> Iterator[str]:
    """Yield the positions of undeclared tagged fields."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == UNKNOWN_TAGS:
                yield f"{path}: {inner}"
            else:
                yield from unknown_tags(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from unknown_tags(inner, f"{path}[{index}]")


def _whole(fields: tuple[Field, ...], version: int, given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = set(given) - {each.name for each in fields}
    assert not unknown, f"there are no fields {unknown}"
    return {each.name: _value(each, version, given) for each in fields if version in each.versions}


def _value(each: Field, version: int, given: Mapping[str, Any]) -> Any:
    value = given.get(each.name, ...)
    if value is ... or (value is None and version not in each.null):
        return each.zero(version)
    if value is None or not each.fields:
        return value
    if each.type == "struct":
        return _whole(each.fields, version, value)
    return [_whole(each.fields, version, one) for one in value]
