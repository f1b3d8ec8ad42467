"""Comparison of declarations: properties that determine a message's form on the wire."""

from __future__ import annotations

from typing import TypeAlias

from dissector.protocol.schema import Field, Schema, split_tagged

Structure: TypeAlias = tuple[object, ...]


def structure(schema: Schema, version: int) -> Structure:
    """Return one version of a message as plain values: names, types, order, nullability, tags."""
    return (version in schema.flexible, *_fields(schema.fields, version))


def same_structure(one: Schema, other: Schema, version: int) -> bool:
    """Return whether two declarations describe the same message at a version."""
    if version not in one.versions or version not in other.versions:
        return False
    return structure(one, version) == structure(other, version)


def _fields(fields: tuple[Field, ...], version: int) -> Structure:
    plain, tagged = split_tagged(fields, version)
    return tuple(_field(each, version) for each in plain + tagged)


def _field(each: Field, version: int) -> Structure:
    default = repr(each.zero(version)) if each.tag is not None and not each.fields else ""
    return (
        each.kafka_name,
        each.type,
        version in each.null,
        each.tag,
        default,
        each.classic,
        _fields(each.fields, version),
    )
