"""Verdicts, and differences by meaning."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.apis import all_apis
from dissector.protocol.embedded.assignors import StickyUserData
from dissector.protocol.embedded.consumer_protocol import ConsumerProtocolSubscription
from dissector.protocol.embedded.sasl import MASK
from dissector.protocol.records import Record, new_batch
from replay.compare import FAILING, compare
from replay.names import Names
from replay.noise import Noise
from replay.outcome import Difference, Outcome, Verdict
from replay.world import World
from tests.replay.outcomes import outcome
from tests.strategies import values


def _found(
    name: str,
    version: int,
    captured: dict[str, Any],
    live: dict[str, Any],
    world: World | None = None,
    noise: Noise | None = None,
    **more: Any,
) -> tuple[Verdict, list[tuple[str, Any, Any]]]:
    made = outcome(name, version, captured, live, **more)
    verdict, differences = compare(made, world or World(), noise)
    return verdict, [(each.path, each.captured, each.replayed) for each in differences]


def test_a_rebalance_that_is_told_sooner_is_no_difference() -> None:
    for is_next, verdict in [(True, Verdict.EQUIVALENT), (False, Verdict.ERROR_CHANGED)]:
        made = outcome("Heartbeat", 3, {}, {"error_code": 27})
        made.step.is_unsettled = is_next
        assert compare(made, World())[0] is verdict


def test_partitions_that_are_given_sooner_are_no_difference() -> None:
    name, some = "ConsumerGroupHeartbeat", {"topic_partitions": [{"partitions": [0]}]}
    for is_later, verdict in [(True, Verdict.EQUIVALENT), (False, Verdict.DIFFERS)]:
        made = outcome(name, 0, {"member_epoch": 1}, {"member_epoch": 1, "assignment": some})
        made.step.is_unassigned = is_later
        assert compare(made, World())[0] is verdict
    refused = outcome(name, 0, {"member_epoch": 1}, {"error_code": 16})
    refused.step.is_unassigned = True
    assert compare(refused, World())[0] is Verdict.ERROR_CHANGED


def _produced(error_code: int = 0, base_offset: int = 0, topic: str = "orders") -> dict[str, Any]:
    partition = {
        "index": 0,
        "error_code": error_code,
        "base_offset": base_offset,
        "log_start_offset": 0,
    }
    return {"responses": [{"name": topic, "partition_responses": [partition]}]}


def test_the_same_is_the_same() -> None:
    assert _found("Produce", 7, _produced(), _produced()) == (Verdict.SAME, [])


def test_where_the_log_begins_says_nothing_beside_an_error() -> None:
    captured, live = _produced(error_code=47), _produced(error_code=47)
    _partition(live)["log_start_offset"] = -1
    assert _found("Produce", 7, captured, live) == (Verdict.EQUIVALENT, [])
    captured, live = _produced(), _produced()
    _partition(live)["log_start_offset"] = -1
    path = "responses[orders].partition_responses[0].log_start_offset"
    assert _found("Produce", 7, captured, live) == (Verdict.DIFFERS, [(path, 0, -1)])


def _partition(body: dict[str, Any]) -> dict[str, Any]:
    partition: dict[str, Any] = body["responses"][0]["partition_responses"][0]
    return partition


def test_an_offset_that_nothing_translates_differs() -> None:
    assert _found("Produce", 7, _produced(base_offset=5), _produced(base_offset=6)) == (
        Verdict.DIFFERS,
        [("responses[orders].partition_responses[0].base_offset", 5, 6)],
    )


def test_offsets_are_translated() -> None:
    world = World()
    world.offsets.learn("orders", 0, captured=5, live=100, count=1)
    live = _produced(base_offset=100)
    assert _found("Produce", 7, _produced(base_offset=5), live, world) == (Verdict.SAME, [])


def test_names_are_turned_back() -> None:
    world = World(names=Names({"orders": "bills"}))
    live = _produced(topic="bills")
    assert _found("Produce", 7, _produced(), live, world) == (Verdict.SAME, [])


def test_another_error_hides_what_follows_from_it() -> None:
    live = _produced(error_code=3, base_offset=-1)
    made = outcome("Produce", 7, _produced(base_offset=5), live)
    path = "responses[orders].partition_responses[0].error_code"
    assert compare(made, World()) == (
        Verdict.ERROR_CHANGED,
        [Difference(path, 0, 3, is_error=True)],
    )


def test_a_target_that_is_ready_sooner_does_the_same() -> None:
    waiting, ready = {"error_code": 14, "producer_id": -1}, {"producer_id": 7}
    assert _found("InitProducerId", 1, waiting, ready) == (Verdict.EQUIVALENT, [])
    assert _found("InitProducerId", 1, ready, waiting)[0] is Verdict.ERROR_CHANGED
    refused = {"error_code": 53}
    assert _found("InitProducerId", 1, waiting, refused)[0] is Verdict.ERROR_CHANGED


def test_a_broker_that_was_not_the_one_to_ask_told_nothing() -> None:
    elsewhere, refused = {"error_code": 16}, {"error_code": 53}
    for live, verdict in [
        ({"producer_id": 7}, Verdict.EQUIVALENT),
        (refused, Verdict.EQUIVALENT),
        (elsewhere, Verdict.SAME),
    ]:
        assert _found("InitProducerId", 1, elsewhere, live) == (verdict, [])
    assert _found("InitProducerId", 1, refused, elsewhere)[0] is Verdict.ERROR_CHANGED


def test_a_group_may_be_at_rest_sooner() -> None:
    def told(state: str, epoch: int) -> dict[str, Any]:
        return {"groups": [{"group_state": state, "group_id": "g", "members": [_member(epoch)]}]}

    def _member(epoch: int) -> dict[str, Any]:
        parts = [{"topic_id": UUID(int=1), "topic_name": "orders", "partitions": [0] * epoch}]
        assigned = {"topic_partitions": parts}
        return {"member_id": "m", "assignment": assigned, "target_assignment": assigned}

    name = "ConsumerGroupDescribe"
    verdict, differences = _found(name, 0, told("Assigning", 0), told("Stable", 1))
    assert (verdict, differences) == (Verdict.EQUIVALENT, [])
    assert _found(name, 0, told("Stable", 1), told("Assigning", 1))[0] is Verdict.DIFFERS
    assert _found(name, 0, told("Assigning", 0), told("Empty", 0))[0] is Verdict.DIFFERS


def test_a_broker_has_its_own_address_and_directories() -> None:
    def told(name: str, value: str) -> dict[str, Any]:
        synonyms = [{"name": name, "value": value, "source": 4}]
        config = {"name": name, "value": value, "config_source": 4, "synonyms": synonyms}
        return {"results": [{"resource_type": 4, "resource_name": "1", "configs": [config]}]}

    for name, verdict in [("log.dirs", Verdict.SAME), ("num.io.threads", Verdict.DIFFERS)]:
        assert _found("DescribeConfigs", 4, told(name, "1"), told(name, "2"))[0] is verdict


def test_tokens_of_others_may_be_there_too() -> None:
    token = {"principal_type": "User", "principal_name": "a", "token_id": "t", "hmac": b"h"}
    none, one = {"tokens": []}, {"tokens": [token]}
    assert _found("DescribeDelegationToken", 1, none, one) == (Verdict.EQUIVALENT, [])
    assert _found("DescribeDelegationToken", 1, one, none)[0] is Verdict.DIFFERS


def test_topics_that_were_made_for_the_replay_are_there_sooner() -> None:
    lacking, there = ({"topics": [{"name": "orders", "error_code": e}]} for e in (3, 0))
    asked = {"topics": [{"name": "orders"}], "allow_auto_topic_creation": False}
    made = outcome("Metadata", 5, lacking, there, asked=asked)
    assert compare(made, World(), made={"orders"}) == (Verdict.EQUIVALENT, [])
    assert compare(made, World(), made={"bills"})[0] is Verdict.ERROR_CHANGED
    created, exists = ({"topics": [{"name": "orders", "error_code": e}]} for e in (0, 36))
    made = outcome("CreateTopics", 2, created, exists)
    assert compare(made, World(), made={"orders"}) == (Verdict.EQUIVALENT, [])


@pytest.mark.parametrize("allowed", [True, False])
def test_topics_that_a_request_creates_may_be_there_sooner(allowed: bool) -> None:
    lacking, there = ({"topics": [{"name": "orders", "error_code": e}]} for e in (3, 0))
    asked = {"topics": [{"name": "orders"}], "allow_auto_topic_creation": allowed}
    made = outcome("Metadata", 5, lacking, there, asked=asked)
    expected = Verdict.EQUIVALENT if allowed else Verdict.ERROR_CHANGED
    assert compare(made, World(), shown={"orders"})[0] is expected
    assert compare(made, World(), shown={"bills"})[0] is Verdict.ERROR_CHANGED


def test_replicas_may_lie_in_other_directories() -> None:
    replica = {"name": "orders", "partitions": [{"partition_index": 0, "partition_size": 70}]}
    full, empty = {"log_dir": "/a", "topics": [replica]}, {"log_dir": "/b", "topics": []}
    captured, live = {"results": [full, empty]}, {"results": [empty, full]}
    assert _found("DescribeLogDirs", 1, captured, live) == (Verdict.SAME, [])
    broken = {"results": [empty, {**full, "error_code": 56}]}
    assert _found("DescribeLogDirs", 1, captured, broken)[0] is Verdict.ERROR_CHANGED


def _within(*partitions: dict[str, Any], session_id: int = 7) -> dict[str, Any]:
    topics = [{"topic": "orders", "partitions": list(partitions)}] if partitions else []
    return {"session_id": session_id, "responses": topics}


def test_answers_within_a_fetch_session_tell_what_is_new() -> None:
    world = World()
    still, moved = {"partition_index": 0}, {"partition_index": 1, "high_watermark": 9}
    broken = {"partition_index": 1, "error_code": 3}
    more = _found("Fetch", 11, _within(still), _within(still, moved), world)
    assert more == (Verdict.EQUIVALENT, [])
    assert _found("Fetch", 11, _within(), _within(moved), world)[0] is Verdict.EQUIVALENT
    assert _found("Fetch", 11, _within(moved), _within(), world)[0] is Verdict.EQUIVALENT
    assert _found("Fetch", 11, _within(), _within(broken), world)[0] is Verdict.DIFFERS
    assert _found("Fetch", 11, _within(broken), _within(), world)[0] is Verdict.DIFFERS
    without = _within(session_id=0), _within(moved, session_id=0)
    assert _found("Fetch", 11, *without, world)[0] is Verdict.DIFFERS


def test_throttling_and_times_do_not_count() -> None:
    captured = {"throttle_time_ms": 5, **_produced()}
    assert _found("Produce", 7, captured, _produced()) == (Verdict.SAME, [])


def test_arrays_are_aligned_by_their_keys() -> None:
    partitions = [{"index": 0}, {"index": 1, "base_offset": 4}]
    captured = {"responses": [{"name": "orders", "partition_responses": partitions}]}
    turned = {"responses": [{"name": "orders", "partition_responses": partitions[::-1]}]}
    assert _found("Produce", 7, captured, turned) == (Verdict.EQUIVALENT, [])
    less = {"responses": [{"name": "orders", "partition_responses": partitions[:1]}]}
    verdict, differences = _found("Produce", 7, captured, less)
    assert verdict is Verdict.DIFFERS
    ((path, before, after),) = differences
    assert path == "responses[orders].partition_responses[1]"
    assert before["base_offset"] == 4
    assert after is None
    verdict, differences = _found("Produce", 7, less, captured)
    assert [path for path, *_ in differences] == [path]
    assert differences[0][1] is None


def test_topics_by_id_are_topics_by_name() -> None:
    here, there = UUID(int=7), UUID(int=8)
    world = World()
    world.captured_topics.learn({here: "orders"})
    world.live_topics.learn({there: "orders"})
    partition = {"index": 0, "error_code": 3}
    captured = {"responses": [{"topic_id": here, "partition_responses": [partition]}]}
    live = {"responses": [{"topic_id": there, "partition_responses": [{"index": 0}]}]}
    assert _found("Produce", 13, captured, live, world) == (
        Verdict.ERROR_CHANGED,
        [("responses[orders].partition_responses[0].error_code", 3, 0)],
    )
    named = {"responses": [{"name": "orders", "partition_responses": [partition]}]}
    assert _found("Produce", 13, captured, named, world, live_version=12) == (
        Verdict.EQUIVALENT,
        [],
    )


def test_what_stood_in_the_body_itself_is_the_only_element() -> None:
    newer = {"coordinators": [{"key": "g", "node_id": 4, "error_code": 30}]}
    older = {"node_id": 1, "error_code": 30}
    asked = {"coordinator_keys": ["g"]}
    found = _found("FindCoordinator", 4, newer, older, live_version=3, asked=asked)
    assert found == (Verdict.EQUIVALENT, [])
    fine = {"node_id": 1}
    found = _found("FindCoordinator", 4, newer, fine, live_version=3, asked=asked)
    assert found == (Verdict.ERROR_CHANGED, [("error_code", 30, 0)])


@pytest.mark.parametrize(
    ("captured", "live", "expected"),
    [
        ((6, ""), (9, None), Verdict.EQUIVALENT),
        ((9, None), (6, ""), Verdict.EQUIVALENT),
        ((9, None), (9, ""), Verdict.DIFFERS),
        ((7, None), (9, ""), Verdict.DIFFERS),
        ((6, "range"), (9, None), Verdict.DIFFERS),
    ],
)
def test_empty_is_null_where_a_version_knows_no_null(
    captured: tuple[int, str | None], live: tuple[int, str | None], expected: Verdict
) -> None:
    (version, before), (live_version, after) = captured, live
    bodies = {"protocol_name": before}, {"protocol_name": after}
    assert _found("JoinGroup", version, *bodies, live_version=live_version)[0] is expected


def test_what_a_broker_gives_counts_only_as_given_or_not() -> None:
    captured, live = {"producer_id": 1, "producer_epoch": 0}, {"producer_id": 9}
    assert _found("InitProducerId", 1, captured, live) == (Verdict.SAME, [])
    none = {"producer_id": -1}
    assert _found("InitProducerId", 1, captured, none) == (
        Verdict.DIFFERS,
        [("producer_id", 1, -1)],
    )


def _fetched(data: bytes | None, **more: Any) -> dict[str, Any]:
    partition = {"partition_index": 0, "records": data, **more}
    return {"responses": [{"topic": "orders", "partitions": [partition]}]}


def _batch(*texts: str, base_offset: int = 0) -> bytes:
    records = [Record(offset_delta=at, value=text.encode()) for at, text in enumerate(texts)]
    return new_batch(records, base_offset=base_offset).to_bytes()


def test_records_that_both_have_are_compared() -> None:
    captured, more = _fetched(_batch("a", "b")), _fetched(_batch("a", "b", "c"))
    assert _found("Fetch", 11, captured, more) == (Verdict.EQUIVALENT, [])
    assert _found("Fetch", 11, captured, captured) == (Verdict.SAME, [])
    other = _fetched(_batch("a", "x"))
    assert _found("Fetch", 11, captured, other) == (
        Verdict.DIFFERS,
        [("responses[orders].partitions[0].records[1].value", "b", "x")],
    )


def test_records_are_found_by_translated_offsets() -> None:
    world = World()
    world.offsets.learn("orders", 0, captured=0, live=50, count=2)
    captured, live = _fetched(_batch("a", "b")), _fetched(_batch("a", "b", base_offset=50))
    assert _found("Fetch", 11, captured, live, world) == (Verdict.SAME, [])


def test_records_that_do_not_come_are_missed() -> None:
    assert _found("Fetch", 11, _fetched(_batch("a")), _fetched(None)) == (
        Verdict.DIFFERS,
        [("responses[orders].partitions[0].records", "1 record, offsets 0 to 0", "no records")],
    )
    assert _found("Fetch", 11, _fetched(None), _fetched(_batch("a")))[0] is Verdict.EQUIVALENT


def test_marks_of_the_log_may_move() -> None:
    captured, live = _fetched(None, high_watermark=5), _fetched(None, high_watermark=9)
    assert _found("Fetch", 11, captured, live) == (Verdict.SAME, [])
    unknown = _fetched(None, high_watermark=-1)
    assert _found("Fetch", 11, captured, unknown)[0] is Verdict.DIFFERS


def test_who_leads_a_group_is_told_its_members() -> None:
    leads = {"leader": "a", "member_id": "a", "members": [{"member_id": "a", "metadata": b"1"}]}
    follows = {"leader": "b", "member_id": "a"}
    asked = {"group_id": "g"}
    assert _found("JoinGroup", 5, leads, follows, asked=asked) == (Verdict.EQUIVALENT, [])
    none = {"leader": "a", "member_id": "a"}
    assert _found("JoinGroup", 5, leads, none, asked=asked)[0] is Verdict.DIFFERS


def test_members_with_other_ids_stand_in_their_order() -> None:
    def joined(*metadata: bytes) -> dict[str, Any]:
        members = [
            {"member_id": f"m{at}-{hash(metadata)}", "metadata": data}
            for at, data in enumerate(metadata)
        ]
        return {"leader": "a", "member_id": "a", "members": members}

    verdict, differences = _found("JoinGroup", 5, joined(b"1", b"2"), joined(b"1", b"3"))
    assert verdict is Verdict.DIFFERS
    assert [each[1:] for each in differences] == [("32", "33")]


def test_the_target_may_have_topics_of_its_own_where_all_were_asked_for() -> None:
    captured, live = ({"topics": [{"name": n} for n in names]} for names in (["a"], ["a", "b"]))
    assert _found("Metadata", 5, captured, live, asked={"topics": None}) == (
        Verdict.EQUIVALENT,
        [],
    )
    verdict, differences = _found("Metadata", 5, captured, live, asked={"topics": [{"name": "a"}]})
    assert verdict is Verdict.DIFFERS
    assert [path for path, *_ in differences] == ["topics[b]"]


def test_secrets_are_not_shown() -> None:
    def described(value: str) -> dict[str, Any]:
        config = {"name": "ssl.key.password", "value": value}
        return {"results": [{"resource_type": 2, "resource_name": "t", "configs": [config]}]}

    made = outcome("DescribeConfigs", 1, described("old"), described("new"))
    assert compare(made, World()) == (Verdict.SAME, [])
    verdict, differences = compare(made, World(), show_secrets=True)
    assert verdict is Verdict.DIFFERS
    assert [each.replayed for each in differences] == ["new"]
    lost = outcome("DescribeConfigs", 1, described("old"), {"results": []})
    assert MASK in str(compare(lost, World())[1])
    assert "old" not in str(compare(lost, World())[1])


@pytest.mark.parametrize(
    ("captured", "live", "more", "verdict"),
    [
        (_produced(), None, {}, Verdict.MISSING),
        (None, _produced(), {}, Verdict.EXTRA),
        (None, None, {}, Verdict.SAME),
        (None, None, {"is_due": False}, Verdict.SAME),
        (_produced(), None, {"parts": []}, Verdict.MISSING),
        (_produced(), None, {"parts": [], "is_refused": True}, Verdict.LEFT_OUT),
        (None, None, {"parts": []}, Verdict.LEFT_OUT),
    ],
)
def test_answers_that_are_not_there(
    captured: dict[str, Any] | None,
    live: dict[str, Any] | None,
    more: dict[str, Any],
    verdict: Verdict,
) -> None:
    made: Outcome = outcome("Produce", 7, captured, live, **more)
    assert compare(made, World()) == (verdict, [])


def test_a_step_that_was_left_out_is_not_missed() -> None:
    made = outcome("Produce", 7, _produced(), None, parts=[])
    made.step.left_out = "telemetry"
    assert compare(made, World()) == (Verdict.LEFT_OUT, [])


def test_noise_does_not_count() -> None:
    noise = Noise(["Produce.responses[*].partition_responses[*].base_offset"])
    before, after = _produced(base_offset=1), _produced(base_offset=2)
    assert _found("Produce", 7, before, after, noise=noise) == (Verdict.EQUIVALENT, [])
    assert sum(noise.ignored.values()) == 1


def test_failing_verdicts() -> None:
    assert {Verdict.DIFFERS, Verdict.ERROR_CHANGED, Verdict.MISSING} == FAILING


@given(st.data())
def test_an_answer_is_as_itself(data: st.DataObject) -> None:
    found = data.draw(st.sampled_from(all_apis()))
    version = data.draw(st.sampled_from(list(found.response.versions)))
    if version not in found.request.versions:
        return
    body = data.draw(values(found.response, version, unknown=False))
    made = outcome(found.name, version, body, body)
    assert compare(made, World()) == (Verdict.SAME, [])


def test_what_an_assignor_keeps_is_compared_by_meaning() -> None:
    def joined(generation: int, partition: int) -> dict[str, Any]:
        had = [{"topic": "t", "partitions": [partition]}]
        kept = StickyUserData.codec(1).build({"previous_assignment": had, "generation": generation})
        told = ConsumerProtocolSubscription.codec(0).build({"topics": ["t"], "user_data": kept})
        member = {"member_id": "m", "metadata": b"\0\0" + told}
        named = {"protocol_type": "consumer", "protocol_name": "sticky", "leader": "m"}
        return named | {"member_id": "m", "generation_id": generation, "members": [member]}

    world = World()
    world.members.learn_turn("g", "m", 1, 4)
    asked = {"group_id": "g", "member_id": "m"}
    assert _found("JoinGroup", 7, joined(1, 0), joined(4, 0), world, asked=asked)[0] is Verdict.SAME
    verdict, differences = _found("JoinGroup", 7, joined(1, 0), joined(4, 2), world, asked=asked)
    at = "members[m].metadata.user_data.previous_assignment[t].partitions"
    assert (verdict, differences) == (Verdict.DIFFERS, [(at, [0], [2])])


def test_it_counts_how_many_partitions_a_coordinator_gives_a_member() -> None:
    def told(*partitions: int) -> dict[str, Any]:
        held = {"topic_id": UUID(int=1), "partitions": list(partitions)}
        return {"member_epoch": 2, "assignment": {"topic_partitions": [held]}}

    assert _found("ShareGroupHeartbeat", 1, told(0), told(1))[0] is Verdict.EQUIVALENT
    assert _found("ShareGroupHeartbeat", 1, told(0), told(0, 1))[0] is Verdict.DIFFERS


def test_a_log_may_end_behind_the_end_of_a_transaction_already() -> None:
    def ends(offset: int) -> dict[str, Any]:
        partition = {"partition_index": 0, "offset": offset}
        return {"topics": [{"name": "orders", "partitions": [partition]}]}

    world = World()
    world.offsets.learn("orders", 0, 0, 0, 8)
    assert _found("ListOffsets", 3, ends(8), ends(9), world)[0] is Verdict.DIFFERS
    world.ended = 1
    assert _found("ListOffsets", 3, ends(8), ends(9), world)[0] is Verdict.EQUIVALENT
    assert _found("ListOffsets", 3, ends(7), ends(8), world)[0] is Verdict.DIFFERS


def test_a_broker_makes_its_own_topics_when_it_needs_them() -> None:
    def told(*names: str) -> dict[str, Any]:
        return {"topics": [{"name": each, "is_internal": each[0] == "_"} for each in names]}

    asked = {"topics": None}
    captured, live = told("orders", "__consumer_offsets"), told("orders")
    assert _found("Metadata", 6, captured, live, asked=asked)[0] is Verdict.EQUIVALENT
    assert _found("Metadata", 6, captured, told("__x"), asked=asked)[0] is Verdict.DIFFERS


def test_others_may_have_set_more() -> None:
    def told(*names: str) -> dict[str, Any]:
        acl = {"principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
        resource = {"resource_type": 2, "pattern_type": 3, "acls": [acl]}
        return {"resources": [resource | {"resource_name": each} for each in names]}

    assert _found("DescribeAcls", 2, told("a"), told("a", "b"))[0] is Verdict.EQUIVALENT
    assert _found("DescribeAcls", 2, told("a", "b"), told("a"))[0] is Verdict.DIFFERS
