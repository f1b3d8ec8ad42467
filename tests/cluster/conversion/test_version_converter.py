"""Requests converted to another version."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cluster.conversion import version_table
from cluster.conversion.change import Change
from cluster.conversion.resource_names import TopicIds
from cluster.conversion.version_converter import (
    choose_version,
    convert,
    names_topics_by_id,
    nearest_version,
)
from cluster.fields.refusal import RewriteError
from dissector.protocol.apis import KEYS, all_apis, api
from dissector.protocol.field_roles import Role
from dissector.protocol.records import LegacyRecord, RecordBatch, new_message_set, parse_records
from dissector.protocol.schema import Schema
from tests.message_strategies import values
from tests.replay.support.builders import uuid, whole


def test_versions_are_negotiated() -> None:
    beat, versions, produce = (api(KEYS[name]) for name in ("Heartbeat", "ApiVersions", "Produce"))
    assert beat is not None
    assert versions is not None
    assert produce is not None
    assert choose_version(beat, 3, {beat.key: (0, 2)}) == 2
    assert choose_version(beat, 3, {}) is None
    assert choose_version(versions, 3, {versions.key: (0, 2)}) == 3
    assert choose_version(produce, 0, {produce.key: (0, 11)}) == 0
    assert choose_version(produce, 0, {produce.key: (0, 12)}) == 3


def _schema(name: str) -> Schema:
    found = api(KEYS[name])
    assert found is not None
    return found.request


def _topics() -> TopicIds:
    topics = TopicIds()
    topics.learn({uuid(7): "t"})
    return topics


def _converted(
    name: str, old: int, new: int, body: dict[str, Any], changes: list[Change] | None = None
) -> Any:
    schema = _schema(name)
    changes = [] if changes is None else changes
    out = convert(schema, whole(name, old, body), old, new, _topics(), changes)
    assert schema.codec(new).parse(schema.codec(new).build(out)) == out
    return out


@pytest.mark.parametrize(
    ("captured", "low", "high", "expected"),
    [(5, 0, 18, 5), (5, 7, 9, 7), (5, 0, 3, 3), (5, 30, 40, None), (5, 4, 2, None)],
)
def test_the_nearest_common_version(
    captured: int, low: int, high: int, expected: int | None
) -> None:
    assert nearest_version(_schema("Fetch"), captured, low, high) == expected


def test_versions_with_topic_ids() -> None:
    assert [
        v for v in _schema("Produce").versions if names_topics_by_id(_schema("Produce"), v)
    ] == [13]
    assert not any(names_topics_by_id(_schema("Metadata"), v) for v in _schema("Metadata").versions)
    assert names_topics_by_id(_schema("OffsetCommit"), 10)


SEVERAL = [found for found in all_apis() if len(list(found.request.versions)) > 1]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("found", SEVERAL, ids=lambda found: found.name)
def test_any_conversion_can_be_encoded_or_is_an_error(found: Any) -> None:
    schema = found.request

    @settings(max_examples=8)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        versions = st.sampled_from(list(schema.versions))
        old, new = data.draw(versions), data.draw(versions)
        assume(old != new)
        codec = schema.codec(old)
        body = codec.parse(codec.build(data.draw(values(schema, old, unknown=False))))
        try:
            out = convert(schema, body, old, new, _topics(), [])
        except RewriteError:
            return
        schema.codec(new).build(out)

    holds()


def _produce(**topic: Any) -> dict[str, Any]:
    partitions = [{"index": 0, "records": b""}]
    return {
        "transactional_id": None,
        "acks": 1,
        "timeout_ms": 1,
        "topic_data": [{**topic, "partition_data": partitions}],
    }


def test_topic_names_and_ids_are_converted() -> None:
    assert _converted("Produce", 9, 13, _produce(name="t")).topic_data[0].topic_id == uuid(7)
    assert _converted("Produce", 13, 9, _produce(topic_id=uuid(7))).topic_data[0].name == "t"
    with pytest.raises(RewriteError, match="'u' has no id"):
        _converted("Produce", 9, 13, _produce(name="u"))
    with pytest.raises(RewriteError, match="no name is known"):
        _converted("Produce", 13, 9, _produce(topic_id=uuid(8)))


def test_only_defaults_may_be_lost() -> None:
    body = {"topics": None, "allow_auto_topic_creation": False}
    with pytest.raises(RewriteError, match="allow_auto_topic_creation = False would be lost"):
        _converted("Metadata", 4, 1, body)
    assert _converted("Metadata", 4, 1, {**body, "allow_auto_topic_creation": True}).topics is None
    fetch = {
        "max_wait_ms": 1,
        "min_bytes": 1,
        "session_id": 3,
        "session_epoch": 1,
        "topics": [],
        "forgotten_topics_data": [],
    }
    changes: list[Change] = []
    assert "session_id" not in _converted("Fetch", 7, 4, fetch, changes)
    assert [(each.path, each.role, each.why) for each in changes] == [
        ("session_id", "session_id", "dropped"),
        ("session_epoch", "session_epoch", "dropped"),
    ]


@pytest.mark.parametrize("stable", [True, False])
def test_require_stable_is_dropped_for_old_versions_and_reported(stable: bool) -> None:
    topics = [{"name": "t", "partition_indexes": [0]}]
    groups = [{"group_id": "g", "member_id": None, "member_epoch": -1, "topics": topics}]
    changes: list[Change] = []
    body = {"groups": groups, "require_stable": stable}
    assert _converted("OffsetFetch", 9, 6, body, changes).group_id == "g"
    expected = [Change("require_stable", "plain", True, None, "dropped")]
    assert changes == (expected if stable else [])


def test_an_empty_pattern_may_be_lost() -> None:
    changes: list[Change] = []
    name, body = "ConsumerGroupHeartbeat", {"group_id": "g", "member_id": "m", "member_epoch": 0}
    body |= dict.fromkeys(("instance_id", "rack_id", "subscribed_topic_names"))
    body |= {"rebalance_timeout_ms": -1, "server_assignor": None, "topic_partitions": None}
    assert _converted(name, 1, 0, {**body, "subscribed_topic_regex": ""}, changes).group_id == "g"
    assert changes == [Change("subscribed_topic_regex", "topic_pattern", "", None, "dropped")]
    with pytest.raises(RewriteError, match="would be lost"):
        _converted(name, 1, 0, {**body, "subscribed_topic_regex": "a.*"})


def test_all_topics_are_encoded_as_in_the_version() -> None:
    assert _converted("Metadata", 0, 9, {"topics": []}).topics is None
    everything = {"topics": None, "allow_auto_topic_creation": True}
    assert _converted("Metadata", 4, 0, everything).topics == []
    with pytest.raises(RewriteError, match="request all"):
        _converted("Metadata", 1, 0, {"topics": []})


OFFSET_FETCH = {
    "group_id": "g",
    "topics": [{"name": "t", "partition_indexes": [0, 1]}],
    "require_stable": False,
}


def test_fields_become_the_element_of_an_array_and_back() -> None:
    folded = _converted("OffsetFetch", 7, 9, OFFSET_FETCH)
    (group,) = folded.groups
    assert (group.group_id, group.member_id, group.member_epoch) == ("g", None, -1)
    assert group.topics[0].partition_indexes == [0, 1]
    assert _converted("OffsetFetch", 9, 7, folded) == whole("OffsetFetch", 7, OFFSET_FETCH)
    by_id = _converted("OffsetFetch", 7, 10, OFFSET_FETCH)
    assert by_id.groups[0].topics[0].topic_id == uuid(7)


def test_elements_without_a_field_in_the_old_version_are_errors() -> None:
    group = {"group_id": "g", "topics": None, "member_id": None, "member_epoch": -1}
    body = {"groups": [group, group], "require_stable": False}
    with pytest.raises(RewriteError, match="2 elements"):
        _converted("OffsetFetch", 9, 7, body)
    member = {"member_id": "m", "group_instance_id": "i", "reason": "because"}
    with pytest.raises(RewriteError, match=r"members\.group_instance_id"):
        _converted("LeaveGroup", 5, 2, {"group_id": "g", "members": [member]})


@pytest.mark.parametrize(
    ("name", "old", "new", "body"),
    [
        ("FindCoordinator", 2, 4, {"key": "g", "key_type": 1}),
        ("LeaveGroup", 2, 4, {"group_id": "g", "member_id": "m"}),
        (
            "AddPartitionsToTxn",
            3,
            4,
            {
                "v3_and_below_transactional_id": "x",
                "v3_and_below_producer_id": 3,
                "v3_and_below_producer_epoch": 1,
                "v3_and_below_topics": [{"name": "t", "partitions": [2]}],
            },
        ),
        ("DeleteTopics", 5, 6, {"topic_names": ["a", "b"], "timeout_ms": 1}),
    ],
)
def test_a_round_trip(name: str, old: int, new: int, body: dict[str, Any]) -> None:
    there = _converted(name, old, new, body)
    assert _converted(name, new, old, there) == whole(name, old, body)


def test_topics_deleted_by_id_are_converted_to_names() -> None:
    body = {"topics": [{"name": None, "topic_id": uuid(7)}], "timeout_ms": 1}
    assert _converted("DeleteTopics", 6, 5, body).topic_names == ["t"]


def test_message_sets_become_batches_but_not_the_reverse() -> None:
    record = LegacyRecord(key=b"k", value=b"v", timestamp=4)
    data = b"".join(each.to_bytes() for each in new_message_set([record]))
    body = _produce(name="t")
    body["topic_data"][0]["partition_data"][0]["records"] = data
    changes: list[Change] = []
    converted = _converted("Produce", 2, 9, body, changes)
    records = converted.topic_data[0].partition_data[0].records
    (batch,) = parse_records(records)
    assert isinstance(batch, RecordBatch)
    path = "topic_data.partition_data.records"
    forms = "message set", "record batch"
    assert changes == [Change(path, Role.RECORDS, *forms, "re-encoded")]
    body["topic_data"][0]["partition_data"][0]["records"] = records
    with pytest.raises(RewriteError, match="no record batches"):
        _converted("Produce", 9, 2, body)


def test_the_table_has_existing_fields_only() -> None:
    for title, fold in version_table.FOLDS.items():
        name, _, kind = title.partition(".")
        found = api(KEYS[name])
        assert found is not None
        schema = found.request if kind == "request" else found.response
        fields = {field.name: field for field in schema.fields}
        inside = {field.name for field in fields[fold.array].fields} | {""}
        assert set(fold.fields) <= fields.keys()
        assert set(fold.fields.values()) <= inside
    for path in version_table.NO_LOSS:
        name, _, field = path.partition(".")
        assert field in {each.name for each in _schema(name).fields}
