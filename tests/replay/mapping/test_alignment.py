"""Elements of two responses are paired."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.conversion.resource_names import NameMap
from cluster.fields.field_layout import Scope, StructField, StructLayout
from cluster.fields.roles import layout_of
from dissector.protocol.api import Api
from dissector.protocol.apis import KEYS, all_apis, api
from replay.mapping.alignment import align, compile_pairs
from replay.mapping.id_map import IdMap
from tests.example_counts import examples
from tests.message_strategies import values
from tests.replay.support.builders import topology, uuid


def _api(name: str) -> Api:
    found = api(KEYS[name])
    assert found is not None
    return found


def _node(name: str, version: int, array: str) -> StructLayout:
    members = layout_of(_api(name).response, version).members
    return next(
        each.layout for each in members if isinstance(each, StructField) and each.name == array
    )


def test_elements_are_paired_by_key() -> None:
    node = _node("DescribeGroups", 5, "groups")
    ids = IdMap(names=NameMap(prefix="p-"))
    captured = [{"group_id": "a"}, {"group_id": "b"}, {"group_id": "gone"}]
    live = [{"group_id": "p-b"}, {"group_id": "p-new"}, {"group_id": "p-a"}]
    assert align(node, captured, node, live, Scope(), ids) == [
        (0, 2),
        (1, 0),
        (2, None),
        (None, 1),
    ]


def test_members_are_paired_by_their_mapped_ids() -> None:
    groups = _node("DescribeGroups", 5, "groups").members
    node = next(each.layout for each in groups if isinstance(each, StructField))
    ids = IdMap()
    ids.members.learn("g", "m-1", "x-1")
    ids.members.learn("g", "m-2", "a-2")
    captured = [{"member_id": "m-1"}, {"member_id": "m-2"}]
    live = [{"member_id": "a-2"}, {"member_id": "x-1"}]
    assert align(node, captured, node, live, Scope(group="g"), ids) == [(0, 1), (1, 0)]


def test_topics_are_paired_across_versions_with_names_and_ids() -> None:
    ids = IdMap(topology({"p-t": 70, "p-u": 80}), NameMap(prefix="p-"))
    ids.captured_topics.learn({uuid(7): "t"})
    by_id, by_name = _node("Fetch", 13, "responses"), _node("Fetch", 12, "responses")
    captured = [{"topic": "t"}, {"topic": "u"}]
    live = [{"topic_id": uuid(80)}, {"topic_id": uuid(70)}]
    ids.captured_topics.learn({uuid(7): "t", uuid(8): "u"})
    assert align(by_name, captured, by_id, live, Scope(), ids) == [(0, 1), (1, 0)]
    names = [{"topic": "p-u"}, {"topic": "p-t"}]
    requested = [{"topic_id": uuid(7)}, {"topic_id": uuid(8)}]
    assert align(by_id, requested, by_name, names, Scope(), ids) == [(0, 1), (1, 0)]


def test_directories_are_paired_by_position() -> None:
    node = _node("DescribeLogDirs", 4, "results")
    captured, live = ([{"log_dir": path} for path in paths] for paths in (["/a", "/b"], ["/c"]))
    ids = IdMap()
    assert align(node, captured, node, live, Scope(), ids) == [(0, 0), (1, None)]


def test_equal_keys_are_paired_in_order_and_others_by_position() -> None:
    ids = IdMap()
    node = _node("ListGroups", 3, "groups")
    same = [{"group_id": "a"}, {"group_id": "a"}]
    assert align(node, same, node, same[:1], Scope(), ids) == [(0, 0), (1, None)]
    nameless = _node("CreateAcls", 2, "results")
    one: dict[str, Any] = {"error_code": 0}
    assert align(nameless, [one], nameless, [one, one], Scope(), ids) == [(0, 0), (None, 1)]


APIS = all_apis()


@settings(max_examples=examples(60))
@given(st.data())
def test_equal_bodies_are_paired_completely(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(APIS)).response
    version = data.draw(st.sampled_from(list(schema.versions)))
    body = data.draw(values(schema, version, unknown=False))
    node = layout_of(schema, version)
    for ours, theirs in compile_pairs(node, node)(body, body, Scope(), Scope(), IdMap()):
        assert ours.role is theirs.role
        assert ours.value is not None
        assert repr(ours.value) == repr(theirs.value)
