"""Encodes bodies of any version from one set of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dissector.protocol.compiled import UNKNOWN_TAGS
from dissector.protocol.schema import Field, Schema


def encode_body(schema: Schema, version: int, fields: Mapping[str, Any]) -> bytes:
    """
    Encode a body.

    Args:
        schema: The schema.
        version: Version of the body.
        fields: Fields of all versions: those that this version lacks are omitted, missing ones are
            zero.
    """
    return schema.codec(version).build(_all_fields(schema.fields, version, fields))


def _all_fields(
    fields: tuple[Field, ...], version: int, given: Mapping[str, Any]
) -> dict[str, Any]:
    whole = {each.name: _value(each, version, given) for each in fields if version in each.versions}
    if UNKNOWN_TAGS in given:
        whole[UNKNOWN_TAGS] = given[UNKNOWN_TAGS]
    return whole


def _value(each: Field, version: int, given: Mapping[str, Any]) -> Any:
    value = given.get(each.name, ...)
    if value is ... or (value is None and version not in each.null):
        return each.zero(version)
    if value is None or not each.fields:
        return value
    if each.type == "struct":
        return _all_fields(each.fields, version, value)
    return [_all_fields(each.fields, version, one) for one in value]
