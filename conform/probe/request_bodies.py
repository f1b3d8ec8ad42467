"""Encodes bodies of any version from one set of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.schema import Field, Schema


def encode_body(schema: Schema, version: int, fields: Mapping[str, Any]) -> bytes:
    """
    Encode a body.

    Args:
        schema: The schema.
        version: Version of the body.
        fields: Fields of all versions: fields that this version lacks are omitted, missing ones are
            zero.
    """
    return schema.codec(version).build(_all_fields(schema.fields, version, fields))


def _all_fields(
    fields: tuple[Field, ...], version: int, values: Mapping[str, Any]
) -> dict[str, Any]:
    complete = {
        field.name: _value(field, version, values) for field in fields if version in field.versions
    }
    if UNKNOWN_TAGS in values:
        complete[UNKNOWN_TAGS] = values[UNKNOWN_TAGS]
    return complete


def _value(field: Field, version: int, values: Mapping[str, Any]) -> Any:
    value = values.get(field.name, ...)
    if value is ... or (value is None and version not in field.null):
        return field.zero(version)
    if value is None or not field.fields:
        return value
    if field.type == "struct":
        return _all_fields(field.fields, version, value)
    return [_all_fields(field.fields, version, element) for element in value]
