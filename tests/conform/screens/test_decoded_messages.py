"""What columns say of canonical messages is not decoded, and the same as their bodies say."""

from __future__ import annotations

import io

import pytest

from conform.evidence import batch_summaries
from conform.judge import Judge
from conform.registry.verdict import MAX_FINDINGS_PER_KIND, Verdict
from conform.screens import layout_table
from dissector import open_capture
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.messages import Message
from tests import tcp_captures
from tests.conform.fetch_scenes import SESSION, fetch_request, fetch_response
from tests.conform.produce_scenes import batch
from tests.conform.scene import Scene, capture_rules

PRODUCE, METADATA = 0, 3

ALWAYS, NEVER = 1, 1 << 30
"""Least numbers of messages that are screened."""


def decoded_in(
    scene: Scene, rule: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Verdict, int]:
    """Return the verdict of a rule on a scene, and how many requests were decoded for it."""
    decoded: list[Exchange] = []
    decode = Exchange._decoded_request

    def noted(exchange: Exchange) -> Message | None:
        decoded.append(exchange)
        return decode(exchange)

    rules = [each for each in capture_rules() if each.id in (rule, "E01")]
    file = io.BytesIO(tcp_captures.pcap_file(scene.wire.packets))
    with monkeypatch.context() as patch:
        patch.setattr(layout_table, "MIN_MESSAGES", least)
        patch.setattr(batch_summaries, "MIN_SUMMARY_BYTES", 0)
        patch.setattr(Exchange, "_decoded_request", noted)
        verdict = Judge(rules).judge_capture(open_capture("-", stdin=file))
    return verdict, len(decoded)


def throttled() -> Scene:
    """Return a scene with requests within the throttle time, behind it, and without an answer."""
    scene = Scene()
    connection = scene.connect()
    for number in range(3 * MAX_FINDINGS_PER_KIND):
        connection.request(METADATA, 9, number, topics=None)
        scene.wait_ms(5)
        connection.response(METADATA, 9, number, throttle_time_ms=100 * (number % 3))
        scene.wait_ms(20 + 160 * (number % 2))
    connection.request(METADATA, 9, number + 1, topics=None)
    return scene


def test_throttle_times_need_no_decoded_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those findings decode their message that are retained in full."""
    screened, decoded = decoded_in(throttled(), "Q01", ALWAYS, monkeypatch)
    plain, all_decoded = decoded_in(throttled(), "Q01", NEVER, monkeypatch)
    assert screened.tallies == plain.tallies
    assert [each.findings for each in screened] == [each.findings for each in plain]
    assert screened.tallies["Q01"].broken > MAX_FINDINGS_PER_KIND
    assert decoded == MAX_FINDINGS_PER_KIND < all_decoded


def test_what_is_not_answered_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without a response is not decoded to find items that the response lacks."""
    scene = Scene()
    connection = scene.connect()
    for number in range(5):
        connection.request(PRODUCE, 9, number, acks=0, timeout_ms=9, topic_data=[])
    verdict, decoded = decoded_in(scene, "A02", ALWAYS, monkeypatch)
    assert dict(verdict.tallies["A02"].unjudged) == {"the response is not in the capture": 5}
    assert not decoded


def unknown_session(*, late: bool) -> Scene:
    """
    Return a scene that begins in a Fetch session, with and without requested offsets.

    A late broker returns what ends before, or begins behind, a requested offset.
    """
    scene = Scene()
    connection = scene.connect(syn=False)
    for number in range(3 * MAX_FINDINGS_PER_KIND):
        epoch, requested = 7 + number, {0: 40} if number % 3 else {}
        fetch_request(connection, number, requested, version=12, session=(SESSION, epoch))
        records = batch(base_offset=10 if late else 50).to_bytes()
        answer = {0: {"records": records, "log_start_offset": 45 if late else 3}, 1: {}}
        fetch_response(connection, number, answer, version=12, session_id=SESSION)
    return scene


SESSION_RULES = ("X01", "X03", "X05", "X06", "X07")


@pytest.mark.parametrize("rule", SESSION_RULES)
@pytest.mark.parametrize("late", [False, True])
def test_unknown_sessions_need_no_decoded_message(
    rule: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = unknown_session(late=late)
    screened, decoded = decoded_in(scene, rule, ALWAYS, monkeypatch)
    plain, all_decoded = decoded_in(scene, rule, NEVER, monkeypatch)
    assert screened.tallies == plain.tallies
    assert [each.findings for each in screened] == [each.findings for each in plain]
    is_broken = late and rule in ("X01", "X03")
    assert bool(screened.tallies[rule].broken) == is_broken
    assert bool(decoded) == is_broken
    assert all_decoded
