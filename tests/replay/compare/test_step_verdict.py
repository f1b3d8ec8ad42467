"""Verdicts on steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.apis import all_apis
from dissector.protocol.embedded.sasl_tokens import MASK
from replay.compare.ignore_rules import Noise
from replay.compare.step_verdict import FAILING_VERDICTS, compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Outcome, Verdict
from tests.message_strategies import values
from tests.replay.support.comparison import found, produced
from tests.replay.support.outcomes import outcome


def test_an_earlier_rebalance_error_is_equivalent() -> None:
    for is_next, verdict in [(True, Verdict.EQUIVALENT), (False, Verdict.ERROR_CHANGED)]:
        made = outcome("Heartbeat", 3, {}, {"error_code": 27})
        made.step.is_before_rebalance = is_next
        assert compare_outcome(made, IdMap())[0] is verdict


@pytest.mark.parametrize(("error", "verdict"), [(0, Verdict.SAME), (27, Verdict.EQUIVALENT)])
def test_a_commit_may_get_the_rebalance_error_earlier(error: int, verdict: Verdict) -> None:
    captured, live = (
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": each}]}]}
        for each in (0, error)
    )
    made = outcome("OffsetCommit", 3, captured, live)
    made.step.is_before_rebalance = True
    assert compare_outcome(made, IdMap())[0] is verdict


def test_partitions_assigned_sooner_are_equivalent() -> None:
    name, some = "ConsumerGroupHeartbeat", {"topic_partitions": [{"partitions": [0]}]}
    for is_later, verdict in [(True, Verdict.EQUIVALENT), (False, Verdict.DIFFERS)]:
        made = outcome(name, 0, {"member_epoch": 1}, {"member_epoch": 1, "assignment": some})
        made.step.is_before_assignment = is_later
        assert compare_outcome(made, IdMap())[0] is verdict
    refused = outcome(name, 0, {"member_epoch": 1}, {"error_code": 16})
    refused.step.is_before_assignment = True
    assert compare_outcome(refused, IdMap())[0] is Verdict.ERROR_CHANGED


@pytest.mark.parametrize(
    ("epoch", "given", "verdict"),
    [(0, 9, Verdict.SAME), (0, 0, Verdict.DIFFERS), (-1, 0, Verdict.EQUIVALENT)],
)
def test_session_ids_are_compared_only_if_requested(
    epoch: int, given: int, verdict: Verdict
) -> None:
    made = outcome("Fetch", 11, {"session_id": 5}, {"session_id": given})
    made.parts[0].request.session_epoch = epoch
    assert compare_outcome(made, IdMap())[0] is verdict


def heartbeat(*tasks: tuple[str, list[int]], status: tuple[str, ...] = ()) -> dict[str, Any]:
    given = [{"subtopology_id": name, "partitions": which} for name, which in tasks]
    waits = [{"status_code": 3, "status_detail": each} for each in status]
    return {"active_tasks": given or None, "status": waits}


@pytest.mark.parametrize(
    ("captured", "live", "verdict"),
    [
        (heartbeat(("0", [0, 1])), heartbeat(("0", [1]), ("1", [0])), Verdict.EQUIVALENT),
        (heartbeat(("0", [0, 1])), heartbeat(("0", [0])), Verdict.DIFFERS),
        (heartbeat(), heartbeat(("0", [0])), Verdict.EQUIVALENT),
        (heartbeat(("0", [0])), heartbeat(), Verdict.DIFFERS),
        (heartbeat(status=("a is missing",)), heartbeat(status=("p-a is",)), Verdict.SAME),
        (heartbeat(status=("a is missing",)), heartbeat(), Verdict.EQUIVALENT),
        (heartbeat(), heartbeat(status=("a is missing",)), Verdict.DIFFERS),
    ],
)
def test_streams_groups_may_assign_tasks_otherwise(
    captured: dict[str, Any], live: dict[str, Any], verdict: Verdict
) -> None:
    assert found("StreamsGroupHeartbeat", 0, captured, live)[0] is verdict


def test_internal_topics_may_exist_sooner() -> None:
    for name, verdict in [
        ("__transaction_state", Verdict.EQUIVALENT),
        ("orders", Verdict.ERROR_CHANGED),
    ]:
        captured, live = ({"topics": [{"name": name, "error_code": each}]} for each in (3, 0))
        assert found("Metadata", 9, captured, live)[0] is verdict


def test_default_replication_may_differ() -> None:
    captured, live = (
        {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": each}]}
        for each in (1, 3)
    )
    assert found("CreateTopics", 5, captured, live)[0] is Verdict.SAME


def test_equal_responses_are_the_same() -> None:
    assert found("Produce", 7, produced(), produced()) == (Verdict.SAME, [])


def test_fields_of_old_versions_equal_the_only_element_in_new_ones() -> None:
    newer = {"coordinators": [{"key": "g", "node_id": 4, "error_code": 30}]}
    older = {"node_id": 1, "error_code": 30}
    request_body = {"coordinator_keys": ["g"]}
    compared = found("FindCoordinator", 4, newer, older, live_version=3, request=request_body)
    assert compared == (Verdict.EQUIVALENT, [])
    fine = {"node_id": 1}
    compared = found("FindCoordinator", 4, newer, fine, live_version=3, request=request_body)
    assert compared == (Verdict.ERROR_CHANGED, [("error_code", 30, 0)])


def test_members_are_compared_at_the_leader_only() -> None:
    leads = {"leader": "a", "member_id": "a", "members": [{"member_id": "a", "metadata": b"1"}]}
    follows = {"leader": "b", "member_id": "a"}
    request_body = {"group_id": "g"}
    assert found("JoinGroup", 5, leads, follows, request=request_body) == (Verdict.EQUIVALENT, [])
    none = {"leader": "a", "member_id": "a"}
    assert found("JoinGroup", 5, leads, none, request=request_body)[0] is Verdict.DIFFERS


def test_secrets_are_not_shown() -> None:
    def described(value: str) -> dict[str, Any]:
        config = {"name": "ssl.key.password", "value": value}
        return {"results": [{"resource_type": 2, "resource_name": "t", "configs": [config]}]}

    made = outcome("DescribeConfigs", 1, described("old"), described("new"))
    assert compare_outcome(made, IdMap()) == (Verdict.SAME, [])
    verdict, differences = compare_outcome(made, IdMap(), show_secrets=True)
    assert verdict is Verdict.DIFFERS
    assert [each.replayed for each in differences] == ["new"]
    lost = outcome("DescribeConfigs", 1, described("old"), {"results": []})
    assert MASK in str(compare_outcome(lost, IdMap())[1])
    assert "old" not in str(compare_outcome(lost, IdMap())[1])


@pytest.mark.parametrize(
    ("captured", "live", "more", "verdict"),
    [
        (produced(), None, {}, Verdict.MISSING),
        (None, produced(), {}, Verdict.EXTRA),
        (None, None, {}, Verdict.SAME),
        (None, None, {"is_due": False}, Verdict.SAME),
        (produced(), None, {"parts": []}, Verdict.MISSING),
        (produced(), None, {"parts": [], "is_refused": True}, Verdict.LEFT_OUT),
        (None, None, {"parts": []}, Verdict.LEFT_OUT),
    ],
)
def test_verdicts_without_a_response(
    captured: dict[str, Any] | None,
    live: dict[str, Any] | None,
    more: dict[str, Any],
    verdict: Verdict,
) -> None:
    made: Outcome = outcome("Produce", 7, captured, live, **more)
    assert compare_outcome(made, IdMap()) == (verdict, [])


def test_an_omitted_step_is_not_missing() -> None:
    made = outcome("Produce", 7, produced(), None, parts=[])
    made.step.left_out = "telemetry"
    assert compare_outcome(made, IdMap()) == (Verdict.LEFT_OUT, [])


def test_differences_by_noise_are_equivalent() -> None:
    noise = Noise(["Produce.responses[*].partition_responses[*].base_offset"])
    before, after = produced(base_offset=1), produced(base_offset=2)
    assert found("Produce", 7, before, after, noise=noise) == (Verdict.EQUIVALENT, [])
    assert sum(noise.ignored.values()) == 1


def test_failing_verdicts() -> None:
    assert {Verdict.DIFFERS, Verdict.ERROR_CHANGED, Verdict.MISSING} == FAILING_VERDICTS


@given(st.data())
def test_any_response_equals_itself(data: st.DataObject) -> None:
    known = data.draw(st.sampled_from(all_apis()))
    version = data.draw(st.sampled_from(list(known.response.versions)))
    if version not in known.request.versions:
        return
    body = data.draw(values(known.response, version, unknown=False))
    made = outcome(known.name, version, body, body)
    assert compare_outcome(made, IdMap()) == (Verdict.SAME, [])


@pytest.mark.parametrize(
    ("is_repeated", "is_sent_again"), [(False, False), (True, False), (False, True)]
)
def test_the_response_to_a_duplicate_may_have_a_time(
    is_repeated: bool, is_sent_again: bool
) -> None:
    def written(time_ms: int) -> dict[str, Any]:
        partition = {"index": 0, "base_offset": 5, "log_append_time_ms": time_ms}
        return {"responses": [{"name": "t", "partition_responses": [partition]}]}

    bodies = written(-1), written(1_700_000_000_000)
    made = outcome("Produce", 7, *bodies, is_repeated=is_repeated)
    made.step.is_sent_again = is_sent_again
    verdict, _ = compare_outcome(made, IdMap())
    is_duplicate = is_repeated or is_sent_again
    assert verdict is (Verdict.EQUIVALENT if is_duplicate else Verdict.DIFFERS)
