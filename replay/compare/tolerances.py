"""Tolerance rules: how two values may differ and still mean the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cluster.conversion.resource_names import NO_ID
from cluster.fields.field_layout import StructLayout, ValueField
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Field
from replay.compare.comparison_policy import UNORDERED_FIELDS

_Body = Mapping[str, Any]

_MOCK_TIME = 1234
"""The append time in all responses of librdkafka's mock cluster (rdkafka_mock_handlers.c)."""


def have_same_error(layout: StructLayout, captured: _Body, live: _Body) -> bool:
    """
    Return whether both report the same error, which makes their log start offsets meaningless.

    Source: ReplicaManager.appendToLocalLog, which sets log_start_offset or -1 depending on the step
    that refused an append.
    """
    errors = [
        (captured.get(leaf.name), live.get(leaf.name))
        for leaf in layout.members
        if isinstance(leaf, ValueField) and leaf.role is Role.ERROR
    ]
    return any(before and before == after for before, after in errors)


def have_equal_task_counts(before: Sequence[_Body] | None, after: Sequence[_Body]) -> bool:
    """Return whether both assign equally many tasks, or the capture has no assignment."""
    if before is None:
        return True
    counts = [sum(len(each["partitions"]) for each in tasks) for tasks in (before, after)]
    return counts[0] == counts[1]


def is_null_for_empty(field: Field, versions: tuple[int, int], before: Any, after: Any) -> bool:
    """Return whether one is null and the other empty because one version has no null there."""
    can_be_null = [version in field.null for version in versions]
    return can_be_null[0] != can_be_null[1] and before != after and not (before or after)


def is_assigned(role: Role, value: Any) -> bool:
    """Return whether a broker-assigned value is set, rather than a placeholder for none."""
    if role is Role.APPEND_TIME:
        return bool(value >= 0) and value != _MOCK_TIME
    if isinstance(value, int):
        return value > 0 if role in (Role.SESSION_ID, Role.MEMBER_EPOCH) else value >= 0
    return bool(value) and value != NO_ID


def is_unordered(layout: StructLayout) -> bool:
    """Return whether elements are topics or partitions of records, which come in any order."""
    return any(member.name in UNORDERED_FIELDS for member in layout.members)


def has_error(element: _Body) -> bool:
    """Return whether a topic or partition of a Fetch has an error, or a partition in it."""
    partitions = element.get("partitions") or ()
    return any(each.get("error_code") for each in (element, *partitions))
