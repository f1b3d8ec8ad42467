"""Keys of array elements are equal on both sides."""

from __future__ import annotations

from cluster.conversion.resource_names import NameMap
from cluster.fields.field_layout import Scope, StructField, StructLayout
from cluster.fields.roles import layout_of
from dissector.protocol.apis import KEYS, api
from replay.compare.ignore_rules import field_pattern
from replay.mapping.element_keys import index_by_key, key_text
from replay.mapping.id_map import IdMap
from tests.replay.support.builders import topology, uuid


def node(name: str, version: int, array: str) -> StructLayout:
    found = api(KEYS[name])
    assert found is not None
    members = layout_of(found.response, version).members
    return next(
        each.layout for each in members if isinstance(each, StructField) and each.name == array
    )


def test_keys_of_the_target_are_in_terms_of_the_capture() -> None:
    groups, ids = node("DescribeGroups", 5, "groups"), IdMap(names=NameMap(prefix="p-"))
    captured = index_by_key(ids, groups, [{"group_id": "b"}, {"group_id": "a"}], Scope(), False)
    live = index_by_key(ids, groups, [{"group_id": "p-a"}, {"group_id": "p-b"}], Scope(), True)
    assert list(captured) == [("b",), ("a",)]
    assert list(live) == [("a",), ("b",)]
    assert live["b",] == {"group_id": "p-b"}


def test_topic_ids_are_keyed_by_their_name_if_known() -> None:
    topics, ids = (
        node("Fetch", 13, "responses"),
        IdMap(topology({"p-t": 7}), NameMap(prefix="p-")),
    )
    ids.captured_topics.learn({uuid(1): "t"})
    captured = [{"topic_id": uuid(1)}, {"topic_id": uuid(2)}]
    assert list(index_by_key(ids, topics, captured, Scope(), False)) == [("t",), (uuid(2),)]
    live = [{"topic_id": uuid(7)}, {"topic_id": uuid(0)}, {"topic_id": None}]
    assert list(index_by_key(ids, topics, live, Scope(), True)) == [("t",), (uuid(0),), (None,)]


def test_equal_keys_are_counted() -> None:
    groups = node("DescribeGroups", 5, "groups")
    found = index_by_key(
        IdMap(), groups, [{"group_id": "a", "n": n} for n in range(3)], Scope(), False
    )
    assert [(key_text(key), each["n"]) for key, each in found.items()] == [
        ("a", 0),
        ("a,again 1", 1),
        ("a,again 2", 2),
    ]


def test_a_bracket_in_a_name_does_not_end_its_key() -> None:
    path = f"topics[{key_text(('odd]name', 3))}].topic_id"
    assert path == r"topics[odd\x5dname,3].topic_id"
    assert field_pattern("Metadata", path) == "Metadata.topics[*].topic_id"
