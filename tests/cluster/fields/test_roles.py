"""The role of every field, and the walk over bodies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from construct import Container
from hypothesis import given
from hypothesis import strategies as st

from cluster.fields.field_layout import FieldValue, StructLayout, ValueField
from cluster.fields.roles import KEY_NAMES, layout_of, path_prefix, walk
from dissector.protocol.apis import KEYS, all_apis, api
from dissector.protocol.embedded.membership.assignors import (
    CooperativeStickyUserData,
    StickyUserData,
)
from dissector.protocol.embedded.membership.connect_protocol import (
    ConnectAssignment,
    ConnectWorkerMetadata,
)
from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Schema
from tests.message_strategies import values

SCHEMAS = [
    *chain.from_iterable((each.request, each.response) for each in all_apis()),
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    StickyUserData,
    CooperativeStickyUserData,
    ConnectWorkerMetadata,
    ConnectAssignment,
]
TABLE = Path(__file__).with_name("roles.txt")


def _leaves(node: StructLayout, path: str) -> Iterator[tuple[str, ValueField]]:
    for member in node.members:
        at = f"{path}.{member.name}"
        if isinstance(member, ValueField):
            yield at, member
        else:
            yield from _leaves(member.layout, at)


def _all_leaves() -> Iterator[tuple[str, ValueField]]:
    for schema in SCHEMAS:
        for version in schema.versions:
            yield from _leaves(layout_of(schema, version), path_prefix(schema))


def test_roles_of_all_fields_equal_the_reviewed_table(request: pytest.FixtureRequest) -> None:
    fields: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for path, leaf in _all_leaves():
        api_and_kind = ".".join(path.split(".")[:2]) if "." in path else path
        fields[leaf.role][api_and_kind][path.removeprefix(f"{api_and_kind}.")] = None
    lines = [
        line
        for role in Role
        for line in (
            f"{role}:",
            *(f"  {where}: {', '.join(paths)}" for where, paths in fields[role].items()),
        )
    ]
    text = "\n".join(lines) + "\n"
    if request.config.getoption("--update-golden"):
        TABLE.write_text(text)
    assert text == TABLE.read_text(), "review the changes, then run with --update-golden"


def test_every_role_occurs() -> None:
    assert {leaf.role for _, leaf in _all_leaves()} == set(Role)


def test_fields_that_identify_elements_exist() -> None:
    assert set(KEY_NAMES) <= {leaf.name for _, leaf in _all_leaves()}


def _schema(name: str, kind: str = "request") -> Schema:
    found = api(KEYS[name])
    assert found is not None
    return found.request if kind == "request" else found.response


def _places(
    name: str, version: int, body: dict[str, Any], kind: str = "request"
) -> list[FieldValue]:
    return list(walk(_schema(name, kind), version, body))


def test_a_place_has_the_scope_of_its_enclosing_fields() -> None:
    body = {
        "replica_id": -1,
        "session_id": 7,
        "topics": [
            {"topic": "a", "partitions": [{"partition": 3, "fetch_offset": 9}]},
            {"topic": "b", "partitions": [{"partition": 4, "fetch_offset": 8}]},
        ],
    }
    offsets = [p for p in _places("Fetch", 11, body) if p.role is Role.OFFSET]
    assert [(p.path, p.value, p.scope.topic, p.scope.partition) for p in offsets] == [
        ("topics[0].partitions[0].fetch_offset", 9, "a", 3),
        ("topics[1].partitions[0].fetch_offset", 8, "b", 4),
    ]
    offsets[1].replace(80)
    assert body["topics"][1]["partitions"][0]["fetch_offset"] == 80


def test_elements_of_plain_arrays_are_places() -> None:
    body = Container(groups=["x", "y"], include_authorized_operations=False)
    first, second, _ = _places("DescribeGroups", 5, body)
    assert (first.path, second.path) == ("groups[0]", "groups[1]")
    second.replace("z")
    assert body.groups == ["x", "z"]


def test_the_group_leader_is_a_member_id_outside_the_scope() -> None:
    body = {"leader": "l", "member_id": "m", "generation_id": 1, "members": []}
    generation = next(
        p for p in _places("JoinGroup", 5, body, "response") if p.role is Role.GENERATION
    )
    assert generation.scope.member == "m"


@given(st.data())
def test_the_walk_visits_the_fields_of_given_roles(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(SCHEMAS))
    version = data.draw(st.sampled_from(list(schema.versions)))
    body = data.draw(values(schema, version, unknown=False))
    seen = {(p.path.replace("]", "").split("[")[0], p.role) for p in walk(schema, version, body)}
    wanted = frozenset({Role.TOPIC, Role.OFFSET, Role.GROUP})
    some = list(walk(schema, version, body, wanted))
    assert {p.role for p in some} <= wanted
    assert {(p.path.replace("]", "").split("[")[0], p.role) for p in some} <= seen
    assert len(some) == sum(p.role in wanted for p in walk(schema, version, body))
    for place in walk(schema, version, body):
        assert place.parent[place.key] is place.value
