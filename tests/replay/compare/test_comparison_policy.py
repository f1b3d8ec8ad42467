"""The compared fields, and differences allowed at any target."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from dissector.protocol.records import Record, new_batch
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Verdict
from tests.replay.support.comparison import fetched, found, produced
from tests.replay.support.outcomes import outcome


def test_success_instead_of_a_retriable_error_is_equivalent() -> None:
    waiting, ready = {"error_code": 14, "producer_id": -1}, {"producer_id": 7}
    assert found("InitProducerId", 1, waiting, ready) == (Verdict.EQUIVALENT, [])
    assert found("InitProducerId", 1, ready, waiting)[0] is Verdict.ERROR_CHANGED
    refused = {"error_code": 53}
    assert found("InitProducerId", 1, waiting, refused)[0] is Verdict.ERROR_CHANGED


def test_after_a_wrong_coordinator_any_response_is_equivalent() -> None:
    elsewhere, refused = {"error_code": 16}, {"error_code": 53}
    for live, verdict in [
        ({"producer_id": 7}, Verdict.EQUIVALENT),
        (refused, Verdict.EQUIVALENT),
        (elsewhere, Verdict.SAME),
    ]:
        assert found("InitProducerId", 1, elsewhere, live) == (verdict, [])
    assert found("InitProducerId", 1, refused, elsewhere)[0] is Verdict.ERROR_CHANGED


def test_a_group_may_be_stable_sooner() -> None:
    def group(state: str, epoch: int) -> dict[str, Any]:
        return {"groups": [{"group_state": state, "group_id": "g", "members": [_member(epoch)]}]}

    def _member(epoch: int) -> dict[str, Any]:
        parts = [{"topic_id": UUID(int=1), "topic_name": "orders", "partitions": [0] * epoch}]
        assigned = {"topic_partitions": parts}
        return {"member_id": "m", "assignment": assigned, "target_assignment": assigned}

    name = "ConsumerGroupDescribe"
    verdict, differences = found(name, 0, group("Assigning", 0), group("Stable", 1))
    assert (verdict, differences) == (Verdict.EQUIVALENT, [])
    assert found(name, 0, group("Stable", 1), group("Assigning", 1))[0] is Verdict.DIFFERS
    assert found(name, 0, group("Assigning", 0), group("Empty", 0))[0] is Verdict.DIFFERS


def test_addresses_and_directories_of_brokers_may_differ() -> None:
    def described(name: str, value: str) -> dict[str, Any]:
        synonyms = [{"name": name, "value": value, "source": 4}]
        config = {"name": name, "value": value, "config_source": 4, "synonyms": synonyms}
        return {"results": [{"resource_type": 4, "resource_name": "1", "configs": [config]}]}

    for name, verdict in [("log.dirs", Verdict.SAME), ("num.io.threads", Verdict.DIFFERS)]:
        assert found("DescribeConfigs", 4, described(name, "1"), described(name, "2"))[0] is verdict


def test_the_target_may_have_further_tokens() -> None:
    token = {"principal_type": "User", "principal_name": "a", "token_id": "t", "hmac": b"h"}
    none, one = {"tokens": []}, {"tokens": [token]}
    assert found("DescribeDelegationToken", 1, none, one) == (Verdict.EQUIVALENT, [])
    assert found("DescribeDelegationToken", 1, one, none)[0] is Verdict.DIFFERS


@pytest.mark.parametrize(
    ("timestamp", "epochs", "verdict"),
    [
        (-2, (0, -1), Verdict.EQUIVALENT),
        (-4, (-1, 0), Verdict.EQUIVALENT),
        (-1, (0, -1), Verdict.DIFFERS),
        (5, (-1, 0), Verdict.DIFFERS),
    ],
)
def test_an_empty_log_may_lack_the_epoch_of_its_start(
    timestamp: int, epochs: tuple[int, int], verdict: Verdict
) -> None:
    def of_orders(**partition: int) -> dict[str, Any]:
        return {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, **partition}]}]}

    captured, live = (of_orders(offset=0, leader_epoch=epoch) for epoch in epochs)
    request = of_orders(timestamp=timestamp)
    assert found("ListOffsets", 11, captured, live, request=request)[0] is verdict
    captured, live = (of_orders(offset=offset, leader_epoch=-1) for offset in (0, 1))
    assert found("ListOffsets", 11, captured, live, request=request)[0] is Verdict.DIFFERS


def test_topics_created_for_the_replay_may_exist_sooner() -> None:
    lacking, there = ({"topics": [{"name": "orders", "error_code": e}]} for e in (3, 0))
    request_body = {"topics": [{"name": "orders"}], "allow_auto_topic_creation": False}
    made = outcome("Metadata", 5, lacking, there, request=request_body)
    assert compare_outcome(made, IdMap(), created_topics={"orders"}) == (Verdict.EQUIVALENT, [])
    assert compare_outcome(made, IdMap(), created_topics={"bills"})[0] is Verdict.ERROR_CHANGED
    created, exists = ({"topics": [{"name": "orders", "error_code": e}]} for e in (0, 36))
    made = outcome("CreateTopics", 2, created, exists)
    assert compare_outcome(made, IdMap(), created_topics={"orders"}) == (Verdict.EQUIVALENT, [])


@pytest.mark.parametrize("allowed", [True, False])
def test_auto_created_topics_may_exist_sooner(allowed: bool) -> None:
    lacking, there = ({"topics": [{"name": "orders", "error_code": e}]} for e in (3, 0))
    request_body = {"topics": [{"name": "orders"}], "allow_auto_topic_creation": allowed}
    made = outcome("Metadata", 5, lacking, there, request=request_body)
    expected = Verdict.EQUIVALENT if allowed else Verdict.ERROR_CHANGED
    assert compare_outcome(made, IdMap(), captured_topics={"orders"})[0] is expected
    assert compare_outcome(made, IdMap(), captured_topics={"bills"})[0] is Verdict.ERROR_CHANGED


def test_replicas_may_be_in_other_directories() -> None:
    replica = {"name": "orders", "partitions": [{"partition_index": 0, "partition_size": 70}]}
    full, empty = {"log_dir": "/a", "topics": [replica]}, {"log_dir": "/b", "topics": []}
    captured, live = {"results": [full, empty]}, {"results": [empty, full]}
    assert found("DescribeLogDirs", 1, captured, live) == (Verdict.SAME, [])
    broken = {"results": [empty, {**full, "error_code": 56}]}
    assert found("DescribeLogDirs", 1, captured, broken)[0] is Verdict.ERROR_CHANGED


def _within(*partitions: dict[str, Any], session_id: int = 7) -> dict[str, Any]:
    topics = [{"topic": "orders", "partitions": list(partitions)}] if partitions else []
    return {"session_id": session_id, "responses": topics}


def test_records_of_partitions_that_a_session_leaves_out_are_awaited() -> None:
    ids, records = IdMap(), new_batch([Record(value=b"a")]).to_bytes()
    other, full = {"partition_index": 1}, {"partition_index": 0, "records": records}
    assert found("Fetch", 11, _within(full, other), _within(other), ids)[0] is Verdict.EQUIVALENT
    (account,) = ids.readers.with_missing()
    assert (account.log, list(account.missing)) == (("orders", 0), [(0, 1)])
    assert found("Fetch", 11, _within(other), _within(full, other), ids)[0] is Verdict.EQUIVALENT
    assert not list(ids.readers.with_missing())


def test_fetch_session_responses_may_omit_unchanged_partitions() -> None:
    ids = IdMap()
    still, moved = {"partition_index": 0}, {"partition_index": 1, "high_watermark": 9}
    broken = {"partition_index": 1, "error_code": 3}
    more = found("Fetch", 11, _within(still), _within(still, moved), ids)
    assert more == (Verdict.EQUIVALENT, [])
    assert found("Fetch", 11, _within(), _within(moved), ids)[0] is Verdict.EQUIVALENT
    assert found("Fetch", 11, _within(moved), _within(), ids)[0] is Verdict.EQUIVALENT
    assert found("Fetch", 11, _within(), _within(broken), ids)[0] is Verdict.DIFFERS
    assert found("Fetch", 11, _within(broken), _within(), ids)[0] is Verdict.DIFFERS
    without = _within(session_id=0), _within(moved, session_id=0)
    assert found("Fetch", 11, *without, ids)[0] is Verdict.DIFFERS


def test_throttling_and_times_are_not_compared() -> None:
    captured = {"throttle_time_ms": 5, **produced()}
    assert found("Produce", 7, captured, produced()) == (Verdict.SAME, [])


def test_broker_generated_values_are_compared_by_presence() -> None:
    captured, live = {"producer_id": 1, "producer_epoch": 0}, {"producer_id": 9}
    assert found("InitProducerId", 1, captured, live) == (Verdict.SAME, [])
    none = {"producer_id": -1}
    assert found("InitProducerId", 1, captured, none) == (
        Verdict.DIFFERS,
        [("producer_id", 1, -1)],
    )


def test_high_watermarks_may_differ() -> None:
    captured, live = fetched(None, high_watermark=5), fetched(None, high_watermark=9)
    assert found("Fetch", 11, captured, live) == (Verdict.SAME, [])
    unknown = fetched(None, high_watermark=-1)
    assert found("Fetch", 11, captured, unknown)[0] is Verdict.DIFFERS


def test_responses_about_all_topics_may_have_further_topics() -> None:
    captured, live = ({"topics": [{"name": n} for n in names]} for names in (["a"], ["a", "b"]))
    assert found("Metadata", 5, captured, live, request={"topics": None}) == (
        Verdict.EQUIVALENT,
        [],
    )
    verdict, differences = found("Metadata", 5, captured, live, request={"topics": [{"name": "a"}]})
    assert verdict is Verdict.DIFFERS
    assert [path for path, *_ in differences] == ["topics[b]"]


def test_assignments_are_compared_by_number_of_partitions() -> None:
    def assigned(*partitions: int) -> dict[str, Any]:
        held = {"topic_id": UUID(int=1), "partitions": list(partitions)}
        return {"member_epoch": 2, "assignment": {"topic_partitions": [held]}}

    assert found("ShareGroupHeartbeat", 1, assigned(0), assigned(1))[0] is Verdict.EQUIVALENT
    assert found("ShareGroupHeartbeat", 1, assigned(0), assigned(0, 1))[0] is Verdict.DIFFERS


def test_a_log_end_may_be_behind_the_transaction_marker() -> None:
    def ends(offset: int) -> dict[str, Any]:
        partition = {"partition_index": 0, "offset": offset}
        return {"topics": [{"name": "orders", "partitions": [partition]}]}

    ids = IdMap()
    ids.offsets.learn("orders", 0, 0, 0, 8)
    assert found("ListOffsets", 3, ends(8), ends(9), ids)[0] is Verdict.DIFFERS
    ids.ended_transactions = 1
    assert found("ListOffsets", 3, ends(8), ends(9), ids)[0] is Verdict.EQUIVALENT
    assert found("ListOffsets", 3, ends(7), ends(8), ids)[0] is Verdict.DIFFERS


def test_internal_topics_may_exist_sooner_or_later() -> None:
    def metadata(*names: str) -> dict[str, Any]:
        return {"topics": [{"name": each, "is_internal": each[0] == "_"} for each in names]}

    request_body = {"topics": None}
    captured, live = metadata("orders", "__consumer_offsets"), metadata("orders")
    assert found("Metadata", 6, captured, live, request=request_body)[0] is Verdict.EQUIVALENT
    assert (
        found("Metadata", 6, captured, metadata("__x"), request=request_body)[0] is Verdict.DIFFERS
    )


def test_the_target_may_have_further_acls() -> None:
    def acls(*names: str) -> dict[str, Any]:
        acl = {"principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
        resource = {"resource_type": 2, "pattern_type": 3, "acls": [acl]}
        return {"resources": [resource | {"resource_name": each} for each in names]}

    assert found("DescribeAcls", 2, acls("a"), acls("a", "b"))[0] is Verdict.EQUIVALENT
    assert found("DescribeAcls", 2, acls("a", "b"), acls("a"))[0] is Verdict.DIFFERS
