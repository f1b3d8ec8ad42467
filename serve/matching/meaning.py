"""The meaning of a request: the values that must equal those of a captured request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cluster.fields.field_layout import FieldValue
from cluster.fields.roles import walk
from dissector.protocol.apis import api_name
from dissector.protocol.field_roles import Role
from serve.forms.canonical_body import canonical_schema, canonical_version

Meaning = dict[str, Any]
"""Place -> value. A place is a path with topic and partition instead of indexes."""

_IGNORED = frozenset(
    {
        Role.EPOCH,
        Role.RACK,
        Role.TOPIC_ID,
        Role.LEADER_EPOCH,
        Role.FETCHED_EPOCH,
        Role.SESSION_ID,
        Role.SESSION_EPOCH,
        Role.TIMESTAMP,
        Role.APPEND_TIME,
        Role.THROTTLE,
        Role.RECORDS,
        Role.CLIENT_INSTANCE,
        Role.SUBSCRIPTION,
        Role.TOKEN,
        Role.EMBEDDED,
        Role.SIZE,
        Role.CLUSTER_ID,
        Role.INCARNATION,
    }
)
"""Roles of values that differ between runs of a client, or do not affect the answer."""

_IGNORED_NAMES = frozenset(
    {
        "client_software_name",
        "client_software_version",
        "max_bytes",
        "max_wait_ms",
        "max_records",
        "batch_size",
        "min_bytes",
        "partition_max_bytes",
        "reason",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "timeout_ms",
        "transaction_timeout_ms",
        "user_endpoint",
        "process_id",
        "voter_directory_id",
    }
)
"""Limits, timeouts and random ids of clients, and text for broker logs."""

OF = " of "
"""Separates the path of a place from its context."""

_INDEX = re.compile(r"\[\d+\]")


def meaning_of(api_key: int, body: Mapping[str, Any]) -> Meaning:
    """Return the meaning of a canonical request."""
    schema, version = canonical_schema(api_key, "request"), canonical_version(api_key)
    found: Meaning = {}
    for each in walk(schema, version, body):
        if not _is_ignored(each):
            place = _place(each)
            while place in found:
                place += "'"
            found[place] = each.value
    return found


def _is_ignored(each: FieldValue) -> bool:
    if each.role is Role.TIMESTAMP:
        return True
    return (
        each.role in _IGNORED
        or each.field.name in _IGNORED_NAMES
        or (each.field.type == "bytes" and each.role is Role.PLAIN)
    )


_NAMING = frozenset(
    {
        Role.TOPIC,
        Role.PARTITION,
        Role.GROUP,
        Role.MEMBER,
        Role.TRANSACTIONAL_ID,
        Role.COORDINATOR_KEY,
        Role.RESOURCE,
        Role.CONFIG_NAME,
    }
)
"""Roles that identify elements of unordered arrays."""


def _place(each: FieldValue) -> str:
    scope = each.scope
    path = _INDEX.sub("[]", each.path)
    around = [
        str(value)
        for value in (scope.topic, scope.partition, scope.group)
        if value is not None and value is not each.value
    ]
    if "[]" in path and (each.role in _NAMING or path.endswith("[]")):
        around.append(repr(each.value))
    return f"{path}{OF}{', '.join(around)}" if around else path


def meaning_key(api_key: int, meaning: Meaning, *more: Any) -> int:
    """Return a hash of a meaning, independent of the order of places."""
    items = sorted((place, repr(value)) for place, value in meaning.items())
    return hash((api_key, tuple(items), more))


def title(api_key: int, meaning: Meaning) -> str:
    """Return a title for a request: its API, and names in it."""
    named = [str(value) for value in meaning.values() if isinstance(value, str) and value]
    return " ".join([api_name(api_key), *dict.fromkeys(named)][:4])
