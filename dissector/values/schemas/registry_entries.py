"""
Schemas as registries write them: in records of `_schemas`, and in responses to requests.

Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html;
confluentinc/schema-registry, SchemaValue.java and SchemaKey.java.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dissector.values.carriers.carried_schema import SchemaRef
from dissector.values.json_values import json_value
from dissector.values.schemas.known_schema import AVRO, Reference
from dissector.values.schemas.schema_store import SchemaStore, guid_of
from dissector.values.value_limits import ValueProblem

SCHEMAS_TOPIC = "_schemas"
"""The topic of Confluent's registry, and of Karapace."""

_KINDS = {"AVRO": AVRO, "JSON": "json-schema", "PROTOBUF": "protobuf"}
KIND_NAMES = {kind: name for name, kind in _KINDS.items()}
"""What registries call the kinds of schemas."""


def is_entry(value: object) -> bool:
    """Return whether a JSON value is a schema with its id, as a registry writes it."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("schema"), str)
        and (isinstance(value.get("id"), int) or guid_of(value.get("guid")) is not None)
    )


def add_entry(store: SchemaStore, entry: Mapping[str, Any]) -> None:
    """Add a schema for which `is_entry` holds; deleted ones stay readable."""
    refs: list[SchemaRef] = []
    if isinstance(number := entry.get("id"), int):
        refs.append(number)
    if (guid := guid_of(entry.get("guid"))) is not None:
        refs.append(guid)
    subject, version = entry.get("subject"), entry.get("version")
    kind = entry.get("schemaType") or "AVRO"
    name = subject if isinstance(subject, str) else f"id {number}"
    store.add(
        _KINDS.get(kind, str(kind)),
        entry["schema"],
        name,
        version if isinstance(version, int) and isinstance(subject, str) else 0,
        refs=tuple(refs),
        references=tuple(_references(entry.get("references"))),
    )


def _references(found: object) -> Iterable[Reference]:
    for each in found if isinstance(found, list) else ():
        match each:
            case {"subject": str(subject), "version": int(version)}:
                name = each.get("name")
                yield name if isinstance(name, str) else subject, subject, version


def add_record(store: SchemaStore, value: bytes | None) -> bool:
    """Add the schema of a record of `_schemas`; return whether it has one."""
    try:
        entry = json_value(value or b"")
    except ValueProblem:
        return False
    if not is_entry(entry):
        return False
    add_entry(store, entry)
    return True
