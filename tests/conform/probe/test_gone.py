"""Probes of a broker that crashes, closes connections or is not the controller."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable

import pytest

from cluster.client.auth import Security
from conform.cli import conform
from conform.probe import probe_target as targets
from conform.probe.probe_registry import WRITES_NOT_ALLOWED
from conform.probe.probe_runner import ProbeResult, probe_broker
from conform.probe.probe_target import Target
from conform.registry.rank import Rank, Severity
from conform.report.report_formats import verdict_check
from dissector.cli.app import main
from dissector.protocol.apis import NAMES
from dissector.protocol.messages import Message
from tests.conform.probe.scripts import LIVE, broken, probed
from tests.replay.support.scripted_broker import (
    HANG_UP,
    Answer,
    Answers,
    Scripted,
    offers,
    scripted,
    single_broker,
)

NOT_CONTROLLER = 41
UNKNOWN_KEY = b"\x03\xe7"
"""API key 999."""


def _hangs_up(_: Message) -> Answer:
    return HANG_UP


REST: Answers = {name: _hangs_up for name in NAMES.values() if name != "ApiVersions"}
UNKNOWN: Answers = {f"api {key}": _hangs_up for key in (999, 32767, -1)}


def probed_crashing(
    *ids: str, crash_api: str, returns: bool = False, returns_late: bool = False
) -> ProbeResult:
    """Probe a broker that crashes at an API; it returns at once, at the next probe, or never."""

    async def ask() -> ProbeResult:
        async with crashing(crash_api) as broker:
            comes_back = Target.wait_for_return

            async def after_a_restart(target: Target) -> bool:
                if returns:
                    await broker.listen_again()
                return await comes_back(target)

            looks_again = Target.has_returned

            async def after_a_late_restart(target: Target) -> bool:
                if returns_late:
                    await broker.listen_again()
                return await looks_again(target)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Target, "wait_for_return", after_a_restart)
                patch.setattr(Target, "has_returned", after_a_late_restart)
                patch.setattr(targets, "RETURN_TIMEOUTS", 20 if returns else 0.05)
                rules = [LIVE[each] for each in ids]
                return await probe_broker(f"127.0.0.1:{broker.port}", rules)

    return asyncio.run(ask())


@contextlib.asynccontextmanager
async def crashing(api: str) -> AsyncIterator[Scripted]:
    """Serve as a broker with few APIs that crashes at one of them."""
    ports: list[int] = []
    known = single_broker(ports)
    offered = offers(ApiVersions=(0, 4), Metadata=(0, 12), DescribeCluster=(0, 1))

    def metadata(message: Message) -> Answer | Awaitable[Answer]:
        return HANG_UP if (message.api_version or 0) > 12 else known["Metadata"](message)

    script: Answers = {**REST, **UNKNOWN, "Metadata": metadata, "ApiVersions": offered}
    async with scripted({**script, api: lambda _: broker.stop_listening()}) as broker:
        ports.append(broker.port)
        yield broker


def crash_findings(outcome: ProbeResult) -> list[str]:
    return [found for found in broken(outcome) if "went away" in found]


def test_a_crash_is_a_finding_and_the_probe_continues_after_a_restart() -> None:
    outcome = probed_crashing("F12", "P09", crash_api="api 999", returns=True)
    (kind,) = outcome.verdict
    assert kind.first.found.startswith("the broker went away when it was sent API key 999 v0: ")
    assert (kind.first.rule.id, kind.first.severity, kind.count) == ("F12", Severity.ERROR, 1)
    assert kind.first.request[4:6] == UNKNOWN_KEY
    # The other unknown keys and versions were sent after the restart.
    assert outcome.verdict.tallies["F12"].judged == 5
    assert outcome.verdict.tallies["P09"].judged == 3
    assert not outcome.verdict.faults


def test_what_may_kill_the_broker_comes_last() -> None:
    outcome = probed_crashing("F12", "P03", "P09", crash_api="api 999")
    (death,) = crash_findings(outcome)
    assert "API key 999 v0" in death
    assert next(iter(outcome.verdict)).first.rank is Rank.BREAKS
    assert "refused the connection" in death
    assert all(outcome.verdict.tallies[each].judged for each in ("P03", "P09"))
    text = "\n".join(verdict_check(outcome.verdict, "it").lines("text"))
    assert "  sent      00 00 00 0a 03 e7 00 00" in text


def test_rules_after_a_crash_without_a_restart_are_not_probed() -> None:
    outcome = probed_crashing("P15", "P16", "F12", crash_api="DescribeCluster")
    away = {"the broker did not come back after P15": 1}
    assert outcome.verdict.tallies["P16"].unjudged == away
    assert outcome.verdict.tallies["F12"].unjudged == away
    text = "\n".join(verdict_check(outcome.verdict, "it").lines("text"))
    assert "once: the broker did not come back after P15 (F12 P16)" in text


def test_a_broker_that_comes_back_late_is_judged_again() -> None:
    outcome = probed_crashing("P15", "P18", crash_api="DescribeCluster", returns_late=True)
    (death,) = crash_findings(outcome)
    assert "when it was sent DescribeCluster v1: " in death
    assert outcome.verdict.tallies["P15"].unjudged
    assert outcome.verdict.tallies["P18"].unjudged == {WRITES_NOT_ALLOWED: 1}


def test_a_crash_at_the_last_request_of_a_rule_is_found() -> None:
    outcome = probed_crashing("P15", "P16", crash_api="DescribeCluster")
    (death,) = crash_findings(outcome)
    assert "when it was sent DescribeCluster v1: " in death
    assert outcome.verdict.tallies["P16"].unjudged == {"the broker did not come back after P15": 1}


def test_a_crash_gives_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    async def ask() -> int:
        async with crashing("api 999") as broker:
            words = ["conform", "--target", f"127.0.0.1:{broker.port}", "--select", "F12"]
            words += ["--timeout", "0.5"]
            return await asyncio.to_thread(main, words, [("conform", conform)])

    assert asyncio.run(ask()) == 1
    assert "error F12" in capsys.readouterr().out


def _deleted(_: Message) -> Answer:
    return {"responses": [{"error_code": 0}]}


AS_LEADER: Answers = {
    "CreateTopics": lambda _: {"topics": [{"error_code": 0}]},
    "DeleteTopics": _deleted,
}


def test_a_closed_connection_at_a_preparatory_step_is_found() -> None:
    outcome, _ = probed(
        {"CreateTopics": lambda _: HANG_UP, "DeleteTopics": _deleted},
        "P20",
        "P25",
        allow_writes=True,
    )
    first, second = broken(outcome)
    assert first == second
    assert first.startswith("CreateTopics v")
    assert first.endswith("closed the connection")
    assert all(tally.broken for tally in outcome.verdict.tallies.values())


def test_findings_of_one_cause_are_reported_once() -> None:
    outcome, _ = probed(
        {"CreateTopics": lambda _: HANG_UP, "DeleteTopics": _deleted},
        "P20",
        "P25",
        "P44",
        allow_writes=True,
    )
    (cause,) = outcome.verdict.causes()
    assert cause.kind.first.cause == "the broker closes the connection"
    assert cause.kind.first.rank is Rank.BREAKS
    assert (cause.count, len(cause.others)) == (3, 2)
    lines = list(verdict_check(outcome.verdict, "it").lines("text"))
    assert [line for line in lines if line.startswith("error")] == [
        f"error P20 {LIVE['P20'].title} (once; breaks clients)"
    ]
    assert "  also      2 times more: P25 CreateTopics (1), P44 CreateTopics (1)" in lines


def test_a_silent_preparatory_step_is_awaited_once() -> None:
    script: Answers = {"CreateTopics": lambda _: None}
    outcome, broker = probed(
        {**script, "DeleteTopics": _deleted}, "P20", "P25", "P44", allow_writes=True, timeout_s=1
    )
    assert len(broken(outcome)) == 1
    assert [each.api for each in broker.requests].count("CreateTopics") == 1


def of_two(ports: list[int], controllers: list[int]) -> Answers:
    """Answer Metadata as one of two brokers, with the next of `controllers` in each response."""

    def metadata(_: Message) -> Answer:
        nodes = [
            {"node_id": node, "host": "127.0.0.1", "port": port}
            for node, port in enumerate(ports, 1)
        ]
        named = controllers.pop(0) if len(controllers) > 1 else controllers[0]
        return {"brokers": nodes, "controller_id": named, "topics": []}

    return {"Metadata": metadata}


def created_at_two_brokers(controllers: list[int]) -> tuple[int, int, int]:
    """Create a topic at two brokers; return the error, and the number of requests to each."""

    async def main() -> tuple[int, int, int]:
        refused: Answers = {"CreateTopics": lambda _: {"topics": [{"error_code": NOT_CONTROLLER}]}}
        taken: Answers = {"CreateTopics": lambda _: {"topics": [{"error_code": 0}]}}
        ports: list[int] = []
        both = of_two(ports, controllers)
        async with (
            scripted({**refused, **both}) as first,
            scripted({**taken, **both}) as second,
        ):
            ports += (first.port, second.port)
            target = await Target.connect(f"127.0.0.1:{first.port}", Security(), 20.0, True)
            try:
                exchange = await target.request("CreateTopics", {"topics": [{"name": "a"}]})
            finally:
                target.close()
            count = [
                sum(m.api == "CreateTopics" for m in each.requests) for each in (first, second)
            ]
            return exchange.field("topics[0].error_code"), count[0], count[1]

    return asyncio.run(main())


def test_topics_are_created_at_the_controller() -> None:
    assert created_at_two_brokers([2]) == (0, 0, 1)


def test_not_controller_leads_to_the_other_broker() -> None:
    assert created_at_two_brokers([1, 2]) == (0, 1, 1)


def test_a_refusal_by_the_controller_is_final() -> None:
    assert created_at_two_brokers([1]) == (NOT_CONTROLLER, 1, 0)


def test_an_empty_list_of_coordinators_gives_no_coordinator() -> None:
    outcome, _ = probed(
        {**AS_LEADER, "FindCoordinator": lambda _: {"coordinators": []}}, "P38", allow_writes=True
    )
    assert outcome.verdict.tallies["P38"].unjudged == {
        "there is no coordinator of a group: the response names none": 1
    }


def test_an_exception_in_a_probe_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("conform.probe.probes.pipelining_probes._check_correlation_id", raises)
    outcome, _ = probed({}, "P08", "P14")
    (fault,) = outcome.verdict.faults.values()
    assert str(fault).startswith("P08 failed: ZeroDivisionError in test_gone.py line ")
    assert outcome.verdict.tallies["P14"].judged


def offering(**versions: tuple[int, int]) -> Answers:
    return {"ApiVersions": offers(ApiVersions=(0, 4), Metadata=(0, 12), **versions)}


def test_a_negative_version_range_is_ignored() -> None:
    outcome, _ = probed(offering(Fetch=(-1, -1)), "P03", "P01")
    assert any(
        "lists invalid ranges: (key, lowest, highest) [(1, -1, -1)]" in f for f in broken(outcome)
    )
    why = "Fetch is offered from -1 to -1, which is an invalid range (P03)"
    assert outcome.verdict.tallies["P01"].unjudged[why] == 1
    assert "Fetch: offers -1 to -1, an invalid range" in "\n".join(
        map(str, outcome.match.differences)
    )


def test_the_reason_for_unjudged_write_rules_is_correct() -> None:
    refused: Answers = {"CreateTopics": lambda _: {"topics": [{"error_code": 29}]}}
    outcome, _ = probed(
        {**REST, **_leads(), **refused, "DeleteTopics": _deleted}, "P01", allow_writes=True
    )
    unjudged = outcome.verdict.tallies["P01"].unjudged
    assert (
        unjudged["Produce: the broker does not create the topic: TOPIC_AUTHORIZATION_FAILED"] == 1
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("error", "count"), [(0, 0), (3, 1)])
def test_an_auto_created_topic_leaves_the_rule_unjudged(error: int, count: int) -> None:
    def led(message: Message) -> Answer:
        assert message.body is not None
        names = [each.name for each in message.body.topics or ()]
        known = {name: error if (name or "").endswith("nowhere") else 0 for name in names}
        there = {"partitions": [{"leader_id": 1}]}
        return {
            "topics": [{"name": name, "error_code": code, **there} for name, code in known.items()]
        }

    script: Answers = {
        **AS_LEADER,
        "Metadata": led,
        "Produce": lambda _: None,
        "ListOffsets": _at_0,
    }
    outcome, _ = probed(script, "P19", allow_writes=True, timeout_s=2)
    assert len(broken(outcome)) == count
    if count:
        (found,) = broken(outcome)
        assert "to an unknown topic: the connection is still open after 2 s" in found
    else:
        (why,) = outcome.verdict.tallies["P19"].unjudged
        assert "creates an unknown topic" in why


def _at_0(_: Message) -> Answer:
    return {"topics": [{"partitions": [{"error_code": 0, "offset": 0}]}]}


def test_topics_are_filled_once() -> None:
    script: Answers = {
        **AS_LEADER,
        **_leads(),
        "ListOffsets": _at_0,
        "Produce": lambda _: {"responses": [{"partition_responses": [{"error_code": 0}]}]},
        "Fetch": lambda _: {"responses": [{"partitions": [{"error_code": 0}]}]},
    }
    _, broker = probed(script, "P27", "P28", "P33", allow_writes=True)
    assert [each.api for each in broker.requests].count("Produce") == 2


def _leads() -> Answers:
    def led(message: Message) -> Answer:
        assert message.body is not None
        names = [each.name for each in message.body.topics or ()]
        return {"topics": [{"name": name, "partitions": [{"leader_id": 1}]} for name in names]}

    return {"Metadata": led}


def test_old_join_versions_need_no_member_id() -> None:
    script: Answers = {"JoinGroup": lambda _: {"error_code": 79, "member_id": "m"}}
    gone: Answers = {"DeleteGroups": lambda _: {"results": [{"error_code": 0}]}}
    outcome, _ = probed({**script, **gone}, "P38", allow_writes=True)
    assert {found.partition(":")[0] for found in broken(outcome)} <= {
        f"JoinGroup v{version}" for version in range(4)
    }
    assert outcome.verdict.tallies["P38"].broken == 4


@pytest.mark.parametrize("deletes", [True, False])
def test_an_undeletable_group_is_used_again(deletes: bool) -> None:
    joined = {"error_code": 0, "member_id": "m", "leader": "m", "generation_id": 1}
    script: Answers = {
        "JoinGroup": lambda _: joined,
        "SyncGroup": lambda _: {"assignment": b""},
        "Heartbeat": lambda _: {"error_code": 0},
        "LeaveGroup": lambda _: {"members": [{"member_id": "m", "error_code": 25}]},
        "DeleteGroups": lambda _: {"results": [{"error_code": 0}]},
    }
    if not deletes:
        names = dict.fromkeys(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"), (0, 4))
        script = {**script, **offering(FindCoordinator=(0, 4), **names)}
    outcome, broker = probed(script, "P39", allow_writes=True)
    assert [each.api for each in broker.requests].count("LeaveGroup") == int(not deletes)
    violations = [found for found in broken(outcome) if found.startswith("LeaveGroup")]
    assert violations == (
        [] if deletes else ["LeaveGroup v4: answered UNKNOWN_MEMBER_ID (25), not NONE"]
    )
    if deletes:
        why = "the broker deleted the group though it had a member"
        assert outcome.verdict.tallies["P39"].unjudged == {why: 1}
