"""Changes of bodies, by paths such as `topics.0.partitions.-1.offset`."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from conform.registry.rule import Side
from dissector.protocol.records import RecordBatch, parse_records
from tests.conform.study.script import Change, Fault, Script, ScriptFrame, body_fault

DATA = ("kafka4-sweep-data", "kafka39-sweep-data", "demo")
CLIENTS = ("demo", "kafka4-java-clients", "kafka4-librdkafka-group")
NEW_GROUPS = ("kafka4-librdkafka-group-848", "kafka4-sweep-groups")
SHARE = ("kafka4-java-share-group", "kafka4-sweep-share")
STREAMS = ("kafka4-sweep-groups",)
TELEMETRY = ("kafka4-sweep-admin",)
IDEMPOTENT = ("kafka4-java-clients", "kafka39-librdkafka-idempotent", "kafka4-sweep-transactions")
GROUPS = ("kafka4-librdkafka-group", "demo", "kafka4-sweep-groups", "kafka4-kafkajs")
TRANSACTIONS = ("kafka4-librdkafka-transactions", "kafka4-kafkajs", "kafka4-sweep-transactions")
ADMIN = (
    "kafka4-java-admin",
    "kafka4-sweep-admin",
    "kafka4-sweep-quorum",
    "kafka4-librdkafka-admin",
)
SASL = ("kafka4-librdkafka-sasl", "kafka4-sweep-sasl", "kafka4-denied")
QUORUM = ("kafka4-sweep-quorum", "kafka4-three-nodes")


Changes = dict[str, Change]


def _faults(
    side: Side, family: str, api: str, captures: tuple[str, ...], changes: Changes, versions: range
) -> list[Fault]:
    return [
        body_fault(family, name, side, api, change, captures, versions)
        for name, change in changes.items()
    ]


def broker_faults(
    family: str,
    api: str,
    captures: tuple[str, ...],
    changes: Changes,
    versions: range = range(100),
) -> list[Fault]:
    """Return faults of a broker, by name: each is a change of a response."""
    return _faults(Side.BROKER, family, api, captures, changes, versions)


def client_faults(
    family: str,
    api: str,
    captures: tuple[str, ...],
    changes: Changes,
    versions: range = range(100),
) -> list[Fault]:
    """Return faults of a client, by name: each is a change of a request."""
    return _faults(Side.CLIENT, family, api, captures, changes, versions)


def at(body: Any, path: str) -> Any:
    """Return the value at a path."""
    for part in path.split(".") if path else ():
        body = body[int(part)] if part.lstrip("-").isdigit() else body[part]
    return body


def _parent(body: Any, path: str) -> tuple[Any, Any]:
    head, _, last = path.rpartition(".")
    key = int(last) if last.lstrip("-").isdigit() else last
    parent = at(body, head)
    parent[key]  # raises an error if missing
    return parent, key


def put(path: str, value: Any, when: Callable[[Any], Any] = lambda body: True) -> Change:
    """Set a field in bodies that satisfy `when`."""

    def change(body: Any, sent: ScriptFrame, script: Script) -> Any:
        if not when(body):
            return False
        parent, key = _parent(body, path)
        parent[key] = value(parent[key]) if callable(value) else value
        return True

    return change


def drop(path: str, when: Callable[[Any], Any] = lambda body: True) -> Change:
    """Remove an item of a list."""

    def change(body: Any, sent: ScriptFrame, script: Script) -> Any:
        if not when(body):
            return False
        parent, key = _parent(body, path)
        del parent[key]
        return True

    return change


def duplicate(path: str, when: Callable[[Any], Any] = lambda body: True) -> Change:
    """Duplicate an item of a list."""

    def change(body: Any, sent: ScriptFrame, script: Script) -> Any:
        if not when(body):
            return False
        parent, key = _parent(body, path)
        parent.append(deepcopy(parent[key]))
        return True

    return change


def add_item(path: str, field: str, value: Any, when: Callable[[Any], Any] = bool) -> Change:
    """Add a copy of an item to a list with one field changed; '' is for lists of plain values."""

    def change(body: Any, sent: ScriptFrame, script: Script) -> Any:
        if not when(body):
            return False
        parent, key = _parent(body, path)
        item = deepcopy(parent[key])
        if field:
            at(item, field)
            inner, last = _parent(item, field)
            inner[last] = value
        else:
            item = value
        parent.append(item)
        return True

    return change


def has_no_error(body: Any) -> bool:
    """Return whether a response has no top-level error."""
    return not body.get("error_code")


def each_without_error(path: str, error: str = "error_code") -> Callable[[Any], bool]:
    """Return a predicate for responses with no error at a path."""
    return lambda body: has_no_error(body) and not at(body, path)[error]


def rebatch(path: str, edit: Callable[[list[Any]], Any], least: int = 1) -> Change:
    """Change the batches of a records field, with matching CRC and length."""

    def change(body: Any, sent: ScriptFrame, script: Script) -> Any:
        parent, key = _parent(body, path)
        batches = parse_records(parent[key] or b"")
        if len(batches) < least or not all(isinstance(each, RecordBatch) for each in batches):
            return False
        if edit(batches) is False:
            return False
        parent[key] = b"".join(each.to_bytes(fix_crc=True) for each in batches)
        return True

    return change
