"""Meanings of requests, and the nearest exchange to a miss."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.apis import KEYS
from serve.forms.canonical_body import canonical_schema, canonical_version, zero_body
from serve.matching.meaning import Meaning, meaning_key, meaning_of, title
from serve.matching.nearest_exchange import nearest


def _meaning(api: str, **values: Any) -> Meaning:
    key = KEYS[api]
    body = zero_body(canonical_schema(key, "request"), canonical_version(key))
    return meaning_of(key, Container(body, **values))


def _topic(name: str, partitions: int) -> Container:
    return Container(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )


def test_limits_and_times_are_ignored() -> None:
    one, other = (_meaning("DeleteTopics", topics=[], timeout_ms=each) for each in (1, 2))
    assert one == other


def test_the_order_of_arrays_is_ignored() -> None:
    topics = [_topic("a", 1), _topic("b", 2)]
    key = KEYS["CreateTopics"]
    keys = {
        meaning_key(key, _meaning("CreateTopics", topics=each)) for each in (topics, topics[::-1])
    }
    assert len(keys) == 1
    other = _meaning("CreateTopics", topics=[_topic("a", 2), _topic("b", 1)])
    assert meaning_key(key, other) not in keys


def test_the_nearest_exchange_has_the_different_field() -> None:
    sent = _meaning("CreateTopics", topics=[_topic("a", 3)])
    known = [
        (1, _meaning("CreateTopics", topics=[_topic("b", 1)], validate_only=True)),
        (2, _meaning("CreateTopics", topics=[_topic("a", 6)])),
    ]
    found = nearest(sent, known)
    assert found is not None
    assert (found.number, found.field) == (2, "topics[].num_partitions")
    assert (found.sent, found.captured) == (3, 6)
    assert nearest(sent, []) is None


def test_an_element_with_another_name_is_reported() -> None:
    groups = [_meaning("DescribeGroups", groups=[each]) for each in ("a", "b")]
    found = nearest(groups[0], [(1, groups[1])])
    assert found is not None
    assert (found.field, found.sent, found.captured) == ("groups[]", "a", "b")
    assert title(KEYS["DescribeGroups"], groups[0]) == "DescribeGroups a"


def test_random_ids_are_ignored() -> None:
    one, other = (
        _meaning("AddRaftVoter", voter_id=7, voter_directory_id=UUID(int=each), listeners=[])
        for each in (1, 2)
    )
    assert one == other
