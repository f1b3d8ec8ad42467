"""
Envelopes around a decoded value: those of Kafka Connect, Debezium and CloudEvents.

Source: Kafka, JsonConverter.java ("schema", "payload"); Debezium's documentation, "Change events";
CloudEvents 1.0, "JSON Event Format" and "Kafka Protocol Binding".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_CONNECT = {"schema", "payload"}
_OPERATIONS = frozenset("crudtm")
"""Create, read (of a snapshot), update, delete, truncate, message."""
_CLOUD_EVENT = {"specversion", "id", "source", "type"}
CLOUD_EVENT_HEADER = "ce_specversion"


def connect_payload(value: Any) -> tuple[Any, str | None] | None:
    """Return the payload and the schema's name of a value of Connect's JsonConverter; else None."""
    if not isinstance(value, dict) or value.keys() != _CONNECT:
        return None
    schema = value["schema"]
    if schema is not None and not (isinstance(schema, dict) and "type" in schema):
        return None
    name = None if schema is None else schema.get("name")
    return value["payload"], name if isinstance(name, str) else None


def is_change_event(value: Any) -> bool:
    """Return whether a decoded value is Debezium's envelope: op, source, and before or after."""
    if not isinstance(value, dict) or "source" not in value:
        return False
    operation = value.get("op")
    is_known = isinstance(operation, str) and operation in _OPERATIONS
    return is_known and ("after" in value or "before" in value)


def is_cloud_event(value: Any, headers: Mapping[str, bytes]) -> bool:
    """Return whether a decoded value is a CloudEvent, or the data of one."""
    if CLOUD_EVENT_HEADER in headers:
        return True
    return isinstance(value, dict) and value.keys() >= _CLOUD_EVENT


def may_be_envelope(names: Collection[str]) -> bool:
    """Return whether a value with these members, at most, may be an event of either kind."""
    return {"source", "op"} <= set(names) or set(names) >= _CLOUD_EVENT
