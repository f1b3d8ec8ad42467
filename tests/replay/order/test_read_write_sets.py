"""Resources read and written by exchanges."""

from __future__ import annotations

import pytest

from replay.order.read_write_sets import CLUSTER, GROUPS, TOPICS, TRANSACTIONS, read_write_sets_of
from tests.replay.support.builders import request, response, uuid
from tests.replay.support.produce_messages import batches


def test_produce_writes_at_the_offsets_of_its_response() -> None:
    body = {"topic_data": [{"name": "orders", "partition_data": [{"index": 1}]}]}
    partition = {"index": 1, "base_offset": 7}
    answer = {"responses": [{"name": "orders", "partition_responses": [partition]}]}
    found = read_write_sets_of(request("Produce", 9, body), response("Produce", 9, answer))
    assert found.writes == {("partition", "orders", 1)}
    assert found.reads == {("topic", "orders")}
    assert found.appended_offsets == {("orders", 1): 7}
    assert found.partitions == {"orders": 2}


def test_fetch_depends_on_records_before_its_position() -> None:
    body = {"topics": [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 5}]}]}
    found = read_write_sets_of(request("Fetch", 11, body), None)
    assert found.read_offsets == {("orders", 0): 4}
    assert not found.writes


@pytest.mark.parametrize(
    ("name", "version"), [("OffsetCommit", 2), ("OffsetCommit", 10), ("TxnOffsetCommit", 3)]
)
def test_a_commit_depends_on_records_before_its_position(name: str, version: int) -> None:
    """Else it may be sent while the offset on the target is still unknown."""
    topic = {"topic_id": uuid(3)} if version == 10 else {"name": "orders"}
    positions = [{"partition_index": 0, "committed_offset": 5}]
    positions.append({"partition_index": 1, "committed_offset": 0})
    body = {"group_id": "g", "topics": [{**topic, "partitions": positions}]}
    found = read_write_sets_of(request(name, version, body), None)
    assert found.read_offsets == {(*topic.values(), 0): 4}


def test_fetch_depends_on_its_returned_records() -> None:
    body = {"topics": [{"topic_id": uuid(3), "partitions": [{"partition": 0}]}]}
    partition = {"partition_index": 0, "records": batches(5, 6)}
    answer = {"responses": [{"topic_id": uuid(3), "partitions": [partition]}]}
    found = read_write_sets_of(request("Fetch", 16, body), response("Fetch", 16, answer))
    assert found.read_offsets == {(uuid(3), 0): 6}


@pytest.mark.parametrize(("version", "topic"), [(11, "orders"), (16, uuid(3))])
def test_a_fetch_reads_the_log_start_that_delete_records_writes(
    version: int, topic: object
) -> None:
    said = "topic" if version < 13 else "topic_id"
    in_session = request("Fetch", version, {"session_id": 7, "topics": []})
    answer = {"responses": [{said: topic, "partitions": [{"partition_index": 2}]}]}
    found = read_write_sets_of(in_session, response("Fetch", version, answer))
    assert ("start", topic, 2) in found.reads
    body = {"topics": [{"name": "orders", "partitions": [{"partition_index": 2, "offset": 3}]}]}
    deleted = read_write_sets_of(request("DeleteRecords", 2, body), None)
    assert ("start", "orders", 2) in deleted.writes


def test_groups_and_transactions_change() -> None:
    join = read_write_sets_of(request("JoinGroup", 5, {"group_id": "g"}), None)
    assert join.writes == {("group", "g"), GROUPS}
    beat = read_write_sets_of(request("Heartbeat", 3, {"group_id": "g"}), None)
    assert beat.reads == {("group", "g")}
    body = {"transactional_id": "t", "producer_id": 9}
    end = read_write_sets_of(request("EndTxn", 3, body), None)
    assert end.writes == {("transactional_id", "t"), TRANSACTIONS}
    assert end.ended_transaction == 9
    assert GROUPS in read_write_sets_of(request("ListGroups", 4, {}), None).reads
    assert TRANSACTIONS in read_write_sets_of(request("ListTransactions", 0, {}), None).reads


def test_config_keys_are_distinguished() -> None:
    users = ("settings", "users")
    assert users in read_write_sets_of(request("AlterUserScramCredentials", 0, {}), None).writes
    assert users in read_write_sets_of(request("DescribeUserScramCredentials", 0, {}), None).reads
    assert users not in read_write_sets_of(request("DescribeClientQuotas", 0, {}), None).reads


@pytest.mark.parametrize(("kind", "thing"), [(2, "topic"), (32, "group"), (4, None), (16, None)])
def test_requests_depend_on_the_configuration_of_their_resource(
    kind: int, thing: str | None
) -> None:
    resources = {"resources": [{"resource_type": kind, "resource_name": "g"}]}
    things = {CLUSTER, ("settings", "configs")} | (set() if thing is None else {(thing, "g")})
    found = read_write_sets_of(request("IncrementalAlterConfigs", 1, resources), None)
    assert found.writes == things
    assert read_write_sets_of(request("DescribeConfigs", 4, resources), None).reads == things


def test_acls_depend_on_their_resources() -> None:
    body = {"creations": [{"resource_type": 5, "resource_name": "t"}]}
    found = read_write_sets_of(request("CreateAcls", 2, body), None)
    assert found.writes == {CLUSTER, ("settings", "acls"), ("transactional_id", "t")}


def test_metadata_may_create_missing_topics() -> None:
    metadata = request("Metadata", 9, {"topics": [{"name": "orders"}]})
    lacking = {"topics": [{"name": "orders", "error_code": 3}]}
    found = read_write_sets_of(metadata, response("Metadata", 9, lacking))
    assert ("topic", "orders") in found.writes
    assert (found.auto_created, found.existing_topics) == ({"orders"}, set())
    there = {"topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]}
    found = read_write_sets_of(metadata, response("Metadata", 9, there))
    assert not found.writes
    assert found.partitions == {"orders": 1}


@pytest.mark.parametrize(("error", "shown"), [(0, True), (36, True), (38, False)])
def test_a_topic_with_a_failed_creation_is_not_written(error: int, shown: bool) -> None:
    create_topics = request("CreateTopics", 4, {"topics": [{"name": "a"}, {"name": "b"}]})
    topics = [{"name": "a", "error_code": error}, {"name": "b", "error_code": 0}]
    found = read_write_sets_of(create_topics, response("CreateTopics", 4, {"topics": topics}))
    assert ("a" in found.partitions) is shown
    assert "b" in found.partitions
    assert found.created_topics == ({"a", "b"} if not error else {"b"})
    assert found.already_created_topics == ({"a"} if error == 36 else set())


def test_requests_about_all_resources() -> None:
    assert TOPICS in read_write_sets_of(request("Metadata", 9, {"topics": None}), None).reads
    assert {TOPICS, CLUSTER} <= read_write_sets_of(request("CreateTopics", 5, {}), None).writes
    assert CLUSTER in read_write_sets_of(request("DescribeConfigs", 2, {}), None).reads


def test_progress_queries() -> None:
    partitions = [{"partition_index": 1}]
    ends = {"topics": [{"name": "orders", "partitions": partitions}]}
    found = read_write_sets_of(request("ListOffsets", 5, ends), None)
    assert found.progress_queries == {("partition", "orders", 1)}
    found = read_write_sets_of(request("OffsetFetch", 5, {"group_id": "g", "topics": None}), None)
    assert found.progress_queries == {("group", "g")}
    assert not read_write_sets_of(request("Heartbeat", 3, {"group_id": "g"}), None).progress_queries


def test_a_streams_heartbeat_may_create_internal_topics() -> None:
    parts = {
        "subtopology_id": "0",
        "state_changelog_topics": [{"name": "store"}],
        "repartition_source_topics": [{"name": "words"}],
    }
    joins = {"group_id": "g", "topology": {"epoch": 0, "subtopologies": [parts]}}
    assert read_write_sets_of(request("StreamsGroupHeartbeat", 0, joins), None).auto_created == {
        "store",
        "words",
    }
    stays = {"group_id": "g", "topology": None}
    assert not read_write_sets_of(request("StreamsGroupHeartbeat", 0, stays), None).auto_created
