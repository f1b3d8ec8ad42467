"""Rules are probed in order, and fixtures are deleted."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cluster.client.auth import Security
from conform.probe.probe_registry import WRITES_NOT_ALLOWED
from dissector.errors import ReplayError
from dissector.protocol.apis import NAMES, api
from dissector.protocol.headers import response_header_version
from dissector.protocol.messages import Message
from dissector.protocol.schema import Field
from tests.conform.probe.scripts import LIVE, broken, probed
from tests.example_counts import examples
from tests.replay.support.scripted_broker import HANG_UP, Answer, Answers, offers


def test_rules_are_probed_in_order() -> None:
    progress: list[str] = []
    outcome, _ = probed({}, "P09", "P03", on_progress=progress.append)
    assert [each[:3] for each in progress] == ["P03", "P09"]
    assert [rule.id for rule in outcome.verdict.rules] == ["P03", "P09"]
    assert broken(outcome) == []
    assert all(tally.judged for tally in outcome.verdict.tallies.values())


def test_a_response_before_authentication_is_reported() -> None:
    script: Answers = {
        "SaslHandshake": lambda _: {"mechanisms": ["PLAIN"]},
        "SaslAuthenticate": lambda _: {},
    }
    security = Security(mechanism="PLAIN", username="alice", password="secret")
    outcome, _ = probed(script, "P16", security=security)
    assert {kind.first.rule.id for kind in outcome.verdict} == {"P16"}
    metadata, token = broken(outcome)
    assert metadata.endswith("as the first request: was answered")
    assert token.endswith("as the first request: was answered")


def test_probes_that_write_need_allow_writes() -> None:
    outcome, broker = probed({}, "P20")
    assert outcome.verdict.tallies["P20"].unjudged == {WRITES_NOT_ALLOWED: 1}
    assert {each.api for each in broker.requests} == {"ApiVersions", "Metadata"}


def test_rules_of_apis_not_offered_are_not_judged() -> None:
    versions = offers(ApiVersions=(0, 4), Metadata=(0, 12))
    outcome, _ = probed({"ApiVersions": versions}, "P30", allow_writes=True)
    (why,) = outcome.verdict.tallies["P30"].unjudged
    assert "no leader" in why or "offers no" in why


def test_fixtures_are_deleted_after_any_failure() -> None:
    removed, warned = [], []

    def record_progress(text: str) -> None:
        removed.append(text)
        if text.startswith("P25"):
            raise asyncio.CancelledError

    def led(message: Message) -> Answer:
        assert message.body is not None
        names = [each.name for each in message.body.topics or ()]
        return {"topics": [{"name": name, "partitions": [{"leader_id": 1}]} for name in names]}

    versions = offers(ApiVersions=(0, 4), Metadata=(0, 12), Produce=(0, 12))
    script: Answers = {"ApiVersions": versions, "Metadata": led, "Produce": lambda _: HANG_UP}
    with pytest.raises(asyncio.CancelledError):
        probed(
            script, "P20", "P25", allow_writes=True, on_progress=record_progress, warn=warned.append
        )
    assert removed[-1] == "removing the created topics and groups"
    (left,) = warned
    assert left.startswith("left behind: topic kafkashark-conform-")
    assert left.endswith("-acks: the broker offers no DeleteTopics")


def test_rules_after_the_loss_of_the_broker_are_not_judged() -> None:
    outcome, _ = probed({"Metadata": lambda _: HANG_UP}, "P15")
    assert broken(outcome) == ["Metadata v13: closed the connection"]
    assert outcome.match.releases


def _nothing(fields: tuple[Field, ...], version: int, choose: Random) -> dict[str, Any]:
    """Return a body with random null, empty and full values."""
    body: dict[str, Any] = {}
    for each in fields:
        if version not in each.versions:
            continue
        if version in each.null and choose.random() < 0.5:
            body[each.name] = None
        elif each.type == "struct":
            body[each.name] = _nothing(each.fields, version, choose)
        elif each.type == "[]struct":
            count = choose.choice((0, 1, 1, 3))
            body[each.name] = [_nothing(each.fields, version, choose) for _ in range(count)]
        elif each.type in ("int16", "int32", "int64"):
            body[each.name] = choose.choice((-1, 0, 0, 1, 3, 35))
        else:
            body[each.name] = each.zero(version)
    return body


ANSWERED = sorted(LIVE.keys() - {"F12", "P02", "P05", "P06", "P08", "P16", "P19"})
"""Rules that wait for answers of the usual form, not for the end of a connection."""


@given(st.integers(0, 2**32), st.sampled_from(ANSWERED))
@example(44151, "P46")  # FindCoordinator v4 or later without coordinators
@settings(max_examples=examples(25), deadline=None)
def test_any_response_is_judged_without_an_error(seed: int, rule: str) -> None:
    choose = Random(seed)

    def anything(message: Message) -> Answer:
        found = api(message.api_key or 0)
        if found is None or message.api_version not in found.response.versions:
            return HANG_UP
        body = _nothing(found.response.fields, message.api_version or 0, choose)
        return framed(message, found.response.codec(message.api_version or 0), body)

    names = {name: anything for name in NAMES.values() if name != "ApiVersions"}
    try:
        outcome, _ = probed(names, rule, allow_writes=True, timeout_s=0.05)
    except ReplayError:
        return  # a machine too busy to respond to itself in time
    tally = outcome.verdict.tallies[rule]
    assert tally.judged or tally.unjudged


def framed(message: Message, codec: Any, body: dict[str, Any]) -> bytes:
    tags = b"\0" * response_header_version(message.api_key or 0, message.api_version or 0)
    frame = (message.correlation_id or 0).to_bytes(4, "big", signed=True) + tags
    frame += codec.build(body)
    return len(frame).to_bytes(4, "big") + frame


@pytest.mark.long
def test_the_probe_of_a_silent_broker_ends() -> None:
    outcome, broker = probed({"Metadata": lambda _: None}, "P14", timeout_s=1)
    assert len(broken(outcome)) == 3
    (why,) = outcome.verdict.tallies["P14"].unjudged
    assert why == "the broker did not answer 3 requests before"
    assert [each.api for each in broker.requests].count("Metadata") == 5  # one that lists its peers
