"""Elements of arrays have the same keys on both sides."""

from __future__ import annotations

from dissector.protocol.apis import KEYS, api
from replay.fields.field_layout import Branch, Node, Scope
from replay.fields.roles import plan
from replay.mapping.element_keys import key_text, keyed
from replay.mapping.id_map import World
from replay.mapping.resource_names import Names
from tests.replay.support.worlds import topology, uuid


def node(name: str, version: int, array: str) -> Node:
    found = api(KEYS[name])
    assert found is not None
    members = plan(found.response, version).members
    return next(each.node for each in members if isinstance(each, Branch) and each.name == array)


def test_keys_of_the_target_are_in_terms_of_the_capture() -> None:
    groups, world = node("DescribeGroups", 5, "groups"), World(names=Names(prefix="p-"))
    captured = keyed(world, groups, [{"group_id": "b"}, {"group_id": "a"}], Scope(), False)
    live = keyed(world, groups, [{"group_id": "p-a"}, {"group_id": "p-b"}], Scope(), True)
    assert list(captured) == [("b",), ("a",)]
    assert list(live) == [("a",), ("b",)]
    assert live["b",] == {"group_id": "p-b"}


def test_ids_of_topics_are_names_where_somebody_tells_them() -> None:
    topics, world = node("Fetch", 13, "responses"), World(topology({"p-t": 7}), Names(prefix="p-"))
    world.captured_topics.learn({uuid(1): "t"})
    captured = [{"topic_id": uuid(1)}, {"topic_id": uuid(2)}]
    assert list(keyed(world, topics, captured, Scope(), False)) == [("t",), (uuid(2),)]
    live = [{"topic_id": uuid(7)}, {"topic_id": uuid(0)}, {"topic_id": None}]
    assert list(keyed(world, topics, live, Scope(), True)) == [("t",), (uuid(0),), (None,)]


def test_equal_keys_are_counted() -> None:
    groups = node("DescribeGroups", 5, "groups")
    found = keyed(World(), groups, [{"group_id": "a", "n": n} for n in range(3)], Scope(), False)
    assert [(key_text(key), each["n"]) for key, each in found.items()] == [
        ("a", 0),
        ("a,again 1", 1),
        ("a,again 2", 2),
    ]
