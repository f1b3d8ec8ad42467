"""
Numbers outside the range of their field: negative ports, offsets, partitions, times.

Kafka uses -1 for "none"; few fields have lower values, and counts and indices begin at 0. The check
of a body is generated for its version, as in `non_canonical_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from conform.registry.rule_screen import INTEGERS, FieldPlace, Limits
from dissector.protocol.schema import Field, Schema, split_tagged

_FROM_0 = frozenset(
    [
        "throttle_time_ms",
        "partition_index",
        "partition",
        "partition_id",
        "partitions",
        "partition_indexes",
        "index",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
        "broker_id",
        "broker_ids",
        "fetch_offset",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "partition_max_bytes",
        "heartbeat_interval_ms",
        "session_lifetime_ms",
        "push_interval_ms",
        "telemetry_max_bytes",
        "acquisition_lock_timeout_ms",
        "session_timeout_ms",
        "max_records",
        "batch_size",
        "first_offset",
        "delivery_count",
        "record_limit",
        "response_partition_limit",
    ]
)
"""Fields that are never -1, like the key fields of lists."""

_MINIMUMS = {
    "generation_id_or_member_epoch": -2,
    "replica_id": -3,
    "timeout_ms": -1,
}
"""Fields with a specific minimum: epochs of leaving static members, replica ids of tools."""

_UNBOUNDED_FIELDS = frozenset(
    [
        "api_key",
        "member_epoch",
        "finalized_features_epoch",
        "timestamp",
        "subscription_id",
        "topic_authorized_operations",
        "cluster_authorized_operations",
        "authorized_operations",
        "expiry_time_period_ms",
        "renew_period_ms",
        "acks",
        "value",
        "offset_lag",
        "lag",
        "source_topics",
        "source_topic_regex",
        "repartition_source_topics",
        "leader",
    ]
)
"""Fields that other rules check, or with any valid number."""

_MAX_PORT = 65535
_MAX_INT64 = 2**63 - 1

OutOfRange = tuple[str, int, int]
"""Path of a number, the number, and the minimum of its field."""


def find_out_of_range(schema: Schema, version: int, body: Any) -> list[OutOfRange]:
    """Return the numbers of a body that are out of the range of their fields."""
    return list(_compiled_check(schema, version)(body))


@cache
def _compiled_check(schema: Schema, version: int) -> Callable[[Any], Iterator[OutOfRange]]:
    lines = ["def check(v0, p0=''):", *_struct(schema.fields, version, 0), " return", " yield"]
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), "<ranges>", "exec"), names)
    found: Callable[[Any], Iterator[OutOfRange]] = names["check"]
    return found


def _struct(fields: tuple[Field, ...], version: int, depth: int) -> list[str]:
    """Return statements that check the struct `v<depth>` with the path `p<depth>`."""
    untagged, tagged = split_tagged(fields, version)
    siblings = untagged + tagged
    lines: list[str] = []
    for each in siblings:
        lines += _field(each, version, depth, siblings)
    return lines


def _field(each: Field, version: int, depth: int, siblings: list[Field]) -> list[str]:
    pad, value = " " * (depth + 1), f"v{depth + 1}"
    read = f"{pad}{value} = v{depth}[{each.name!r}]"
    path = f"p{depth} + {each.name!r}"
    if each.type in INTEGERS:
        minimum = minimum_of(each)
        if minimum is None:
            return []
        lines = [read, f"{pad}if {value} < {minimum}: yield {path}, {value}, {minimum}"]
        if each.name == "port":
            lines += _port(pad, value, path, depth, siblings)
        return lines
    if each.type == "struct":
        inner = _struct(each.fields, version, depth + 1)
        step = f"{pad} p{depth + 1} = {path} + '.'"
        return [read, f"{pad}if {value} is not None:", step, *inner] if inner else []
    if each.type == "[]struct":
        inner = _struct(each.fields, version, depth + 1)
        step = f"{pad} p{depth + 1} = {path} + f'[{{i{depth}}}].'"
        loop = f"{pad}for i{depth}, {value} in enumerate(v{depth}[{each.name!r}] or ()):"
        return [loop, step, *inner] if inner else []
    if each.type.startswith("[]") and each.type[2:] in INTEGERS and each.name in _FROM_0:
        loop = f"{pad}for {value} in v{depth}[{each.name!r}] or ():"
        return [loop, f"{pad} if {value} < 0: yield {path}, {value}, 0"]
    return []


def _port(pad: str, value: str, path: str, depth: int, siblings: list[Field]) -> list[str]:
    """Return statements that check a port: -1 is valid only with a negative node id."""
    node = next((each.name for each in siblings if each.name in ("node_id", "broker_id")), None)
    lines = [f"{pad}if {value} > {_MAX_PORT}: yield {path}, {value}, 0"]
    if node is not None:
        lines += [f"{pad}if {value} == -1 and v{depth}[{node!r}] >= 0: yield {path}, {value}, 0"]
    return lines


def range_limits(place: FieldPlace) -> Limits | None:
    """Return limits inside which `find_out_of_range` finds nothing."""
    declared = place.declared
    if place.type not in INTEGERS or (place.is_item and declared.name not in _FROM_0):
        return None
    if place.is_item or declared.name == "port":
        return 0, _MAX_PORT if declared.name == "port" else _MAX_INT64
    minimum = minimum_of(declared)
    return None if minimum is None else (minimum, _MAX_INT64)


def minimum_of(each: Field) -> int | None:
    """Return the minimum of a field; None if any number is valid."""
    if each.name in _UNBOUNDED_FIELDS:
        return None
    return 0 if each.key or each.name in _FROM_0 else _MINIMUMS.get(each.name, -1)
