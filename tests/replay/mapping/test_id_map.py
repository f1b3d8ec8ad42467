"""Ids mapped from the capture to the target and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.conversion.resource_names import NameMap
from cluster.fields.field_layout import Scope
from cluster.fields.refusal import RewriteError
from dissector.protocol.field_roles import Role
from replay.mapping.broker_map import BrokerMap
from replay.mapping.id_map import OPAQUE_ROLES, IdMap
from replay.mapping.to_captured import CapturedMapping
from replay.mapping.to_live import LiveMapping
from tests.replay.support.builders import topology, uuid

SCOPE = Scope(
    topic="t", partition=0, group="g", member="m", producer_id=9, producer_epoch=2, kind=0
)


def _id_map() -> IdMap:
    ids = IdMap(topology({"p-t": 70}, nodes=2), NameMap(prefix="p-"))
    ids.captured_topics.learn({uuid(7): "t"})
    ids.producers.learn((9, 2), (90, 0))
    ids.producers.sequence((9, 2), "t", 0, 40)
    ids.members.learn("g", "m", "live")
    ids.members.learn_generation("g", "m", 5, 1)
    ids.offsets.learn("t", 0, 100, 0, 10)
    ids.learn_epoch("t", 0, 3, 0)
    for role in OPAQUE_ROLES:
        ids.learn_opaque(role, 11, 12)
    ids.brokers.live(17)
    return ids


@pytest.mark.parametrize(
    ("role", "captured", "live"),
    [
        (Role.TOPIC, "t", "p-t"),
        (Role.TOPIC_ID, uuid(7), uuid(70)),
        (Role.TOPIC_PATTERN, "^a.*", "^p\\-(?:a.*)"),
        (Role.GROUP, "g", "p-g"),
        (Role.TRANSACTIONAL_ID, "x", "p-x"),
        (Role.TRANSACTIONAL_ID_PATTERN, "x.*", "p\\-(?:x.*)"),
        (Role.COORDINATOR_KEY, "g", "p-g"),
        (Role.BROKER_ID, 17, 0),
        (Role.LEADER_EPOCH, 3, 0),
        (Role.FETCHED_EPOCH, 3, 0),
        (Role.OFFSET, 104, 4),
        (Role.PRODUCER_ID, 9, 90),
        (Role.PRODUCER_EPOCH, 2, 0),
        (Role.MEMBER, "m", "live"),
        (Role.GENERATION, 5, 1),
        (Role.MEMBER_EPOCH, 5, 1),
        *((role, 11, 12) for role in sorted(OPAQUE_ROLES)),
        (Role.PLAIN, 1, 1),
        (Role.TOPIC, None, None),
        (Role.TOPIC_ID, uuid(0), uuid(0)),
    ],
)
def test_ids_map_both_ways(role: Role, captured: Any, live: Any) -> None:
    ids = _id_map()
    assert ids.live(role, captured, SCOPE)[0] == live
    assert ids.captured(role, live, SCOPE) == captured


@pytest.mark.parametrize(
    ("kind", "captured", "live"),
    [(2, "t", "p-t"), (3, "g", "p-g"), (5, "x", "p-x"), (32, "g", "p-g"), (4, "17", "0")],
)
def test_resources_map_both_ways(kind: int, captured: str, live: str) -> None:
    ids, scope = _id_map(), Scope(kind=kind)
    assert ids.live(Role.RESOURCE, captured, scope) == (live, "")
    assert ids.captured(Role.RESOURCE, live, scope) == captured


@pytest.mark.parametrize("name", ["*", "kafka-cluster"])
def test_wildcard_names_are_unchanged(name: str) -> None:
    assert _id_map().live(Role.RESOURCE, name, Scope(kind=4 if name != "*" else 2))[0] == name


def test_a_fenced_leader_epoch_gives_way_to_the_current_one() -> None:
    ids = IdMap()
    for partition in (0, 1):
        ids.learn_epoch("t", partition, 4, 7)
    ids.forget_epoch(Scope(topic="t", partition=0), 4)
    ids.forget_epoch(Scope(topic="t", partition=0), 5)
    assert ids.leader_epochs == {("t", 1, 4): 7}


def test_sequences_in_responses_are_mapped_back() -> None:
    assert _id_map().captured(Role.SEQUENCE, 3, SCOPE) == 43


def test_share_partitions_are_found_by_group_and_topic() -> None:
    ids, scope = _id_map(), Scope(kind=2)
    key = "g:AAAAAAAAAAAAAAAAAAAABw:3"
    live, _ = ids.live(Role.COORDINATOR_KEY, key, scope)
    assert live == "p-g:AAAAAAAAAAAAAAAAAAAARg:3"
    assert ids.captured(Role.COORDINATOR_KEY, live, scope) == key


def test_every_mapped_role_has_an_inverse() -> None:
    ways = [{role for role in Role if hasattr(way, role)} for way in (LiveMapping, CapturedMapping)]
    assert ways[0] <= ways[1]


def test_unknown_leader_epochs_become_the_current_one_or_none() -> None:
    ids = _id_map()
    assert ids.live(Role.LEADER_EPOCH, 8, SCOPE) == (5, "")
    assert ids.live(Role.FETCHED_EPOCH, 8, SCOPE) == (-1, "")
    assert ids.live(Role.LEADER_EPOCH, -1, SCOPE) == (-1, "")
    assert ids.live(Role.LEADER_EPOCH, 8, Scope(topic="u", partition=0)) == (-1, "")


def test_a_scope_with_a_topic_id_has_its_topic() -> None:
    scope = Scope(topic_id=uuid(7), partition=0)
    assert _id_map().live(Role.OFFSET, 104, scope) == (4, "translated")


def test_unknown_producers_are_errors_only_with_a_target() -> None:
    scope = Scope(producer_id=8, producer_epoch=0)
    with pytest.raises(RewriteError) as caught:
        _id_map().live(Role.PRODUCER_ID, 8, scope)
    assert (caught.value.role, caught.value.value) == (Role.PRODUCER_ID, (8, 0))
    assert IdMap().live(Role.PRODUCER_ID, 8, scope) == (8, "")
    assert _id_map().live(Role.PRODUCER_ID, -1, scope) == (-1, "")


def test_topic_role_is_mapped_only_if_names_change() -> None:
    assert Role.TOPIC not in IdMap().roles
    assert Role.TOPIC in _id_map().roles
    assert Role.OFFSET in IdMap().roles


@given(st.lists(st.integers(0, 30), unique=True, max_size=3))
def test_each_broker_stands_for_one_while_there_are_enough(nodes: list[int]) -> None:
    brokers = BrokerMap(topology({}, nodes=3))
    live = [brokers.live(node) for node in nodes]
    assert all(node == there for node, there in zip(nodes, live, strict=True) if node < 3)
    others = [there for node, there in zip(nodes, live, strict=True) if node >= 3]
    assert len(set(others)) == len(others)
    assert [brokers.live(node) for node in nodes] == live
    assert brokers.live(-1) == -1
    assert BrokerMap(None).live(40) == 40


def test_unknown_captured_brokers_map_to_no_target_broker() -> None:
    brokers = BrokerMap(topology({}, nodes=2))
    brokers.set_captured_ids([1, 7])
    assert [brokers.live(node) for node in (1, 7, 0, 99)] == [1, 0, 1000, 99]


def test_replicas_are_at_different_brokers_of_the_target() -> None:
    brokers = BrokerMap(topology({}, nodes=3))
    brokers.set_captured_ids([101, 102, 103, 104])
    assert [brokers.live(node) for node in (103, 102, 101)] == [2, 1, 0]
    assert brokers.distinct([103, 101]) == [2, 0]
    assert brokers.distinct([104, 101, 102]) == [0, 1, 2]
    assert brokers.distinct([101, 102, 103, 104]) == [0, 1, 2]


def test_only_transaction_markers_may_separate_equivalent_offsets() -> None:
    ids = IdMap(topology({}))
    scope = Scope(topic="t", partition=0)
    ids.offsets.learn("t", 0, 0, 0, 8)
    ids.offsets.learn("t", 0, 9, 9, 1)
    assert not ids.are_markers(scope, 8, 9)
    ids.ended_transactions = 1
    assert ids.are_markers(scope, 8, 9)
    assert not ids.are_markers(scope, 7, 8)
    assert not ids.are_markers(scope, 9, 10)
    assert not ids.are_markers(scope, 10, 12)
    assert not ids.are_markers(scope, 9, 8)
    assert not ids.are_markers(Scope(topic="t"), 8, 9)
