"""Tolerated differences between two values."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.fields.field_layout import StructField, StructLayout
from cluster.fields.roles import layout_of
from dissector.protocol.apis import KEYS, api
from dissector.protocol.field_roles import Role
from replay.compare.tolerances import (
    have_equal_task_counts,
    have_same_error,
    is_assigned,
    is_null_for_empty,
)


@pytest.mark.parametrize(
    ("role", "value", "expected"),
    [
        (Role.SESSION_ID, 0, False),
        (Role.SESSION_ID, 7, True),
        (Role.PRODUCER_ID, 0, True),
        (Role.PRODUCER_ID, -1, False),
        (Role.MEMBER, "", False),
        (Role.MEMBER, "a", True),
    ],
)
def test_values_assigned_by_a_broker(role: Role, value: Any, expected: bool) -> None:
    assert is_assigned(role, value) is expected


def test_tasks_are_compared_by_their_sum() -> None:
    one = [{"partitions": [0, 1]}, {"partitions": [2]}]
    assert have_equal_task_counts(one, [{"partitions": [5, 6, 7]}])
    assert not have_equal_task_counts(one, [])
    assert have_equal_task_counts(None, one)


def partition() -> StructLayout:
    produce = api(KEYS["Produce"])
    assert produce is not None
    node = layout_of(produce.response, 7)
    for _ in range(2):
        node = next(each.layout for each in node.members if isinstance(each, StructField))
    return node


@pytest.mark.parametrize(("one", "other", "expected"), [(3, 3, True), (3, 4, False), (0, 0, False)])
def test_same_errors(one: int, other: int, expected: bool) -> None:
    assert have_same_error(partition(), {"error_code": one}, {"error_code": other}) is expected


def test_null_equals_empty_where_one_version_has_no_null() -> None:
    metadata = api(KEYS["Metadata"])
    assert metadata is not None
    topics = next(each for each in metadata.request.fields if each.name == "topics")
    assert is_null_for_empty(topics, (0, 1), [], None)
    assert not is_null_for_empty(topics, (1, 2), [], None)
    assert not is_null_for_empty(topics, (0, 1), ["a"], None)
