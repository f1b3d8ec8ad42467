"""Our values in the form of Kafka's JSON converters."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from dissector.protocol.schema import Field, split_tagged

Names = Mapping[str, str | None]
"""Our name -> Kafka's, in camelCase; None for a tagged field that a release does not know."""


def kafka_json(
    fields: tuple[Field, ...], version: int, body: Mapping[str, Any], names: Names
) -> dict[str, Any]:
    """
    Convert a body like Kafka's converter.

    Tagged fields at their default, and unknown ones, are omitted. Records fields are given by size
    only.

    Args:
        fields: The declaration.
        version: The version.
        body: The decoded body.
        names: The names of this release, if different from ours.
    """
    plain, tagged = split_tagged(fields, version)
    out: dict[str, Any] = {}
    for field in plain + tagged:
        value = body[field.name]
        camel = field.kafka_name[:1].lower() + field.kafka_name[1:]
        name = names.get(camel, camel)
        if name is None or (field.tag is not None and value == field.zero(version)):
            continue
        if field.type == "records" and value is not None:
            out[f"{name}SizeInBytes"] = len(value)
        elif field.type == "struct" and value is not None:
            out[name] = kafka_json(field.fields, version, value, names)
        elif field.type == "[]struct" and value is not None:
            out[name] = [kafka_json(field.fields, version, item, names) for item in value]
        else:
            out[name] = _plain(value)
    return out


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case UUID():
            return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
        case list():
            return [_plain(item) for item in value]
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    return value
