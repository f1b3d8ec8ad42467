"""Replay sends nothing to hosts that only the target names, unless they are allowed."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cluster.client.auth import plain_dialogue
from dissector.cli import main as run_command
from dissector.protocol.apis import KEYS
from replay import Plan, Report, Security, replay_async
from replay.model.outcome import Verdict
from tests.default_frames import request, response
from tests.replay.support.hostile_target import HostileTarget, hostile
from tests.replay.support.replay_captures import exchange, saved
from tests.tcp_captures import Wire

HEARTBEAT = KEYS["Heartbeat"]
PLAIN = Security(mechanism="PLAIN", username="bob", password="sesame-password")


def beats(folder: Path) -> str:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(3):
        heartbeat = request(HEARTBEAT, 3, number, group_id="g", member_id="m")
        exchange(connection, heartbeat, response(HEARTBEAT, 3, number, error_code=0))
    return saved(folder, wire)


def replayed(
    folder: Path, redirects_later: bool = False, allow_also: bool = False, **options: Any
) -> tuple[Report, HostileTarget]:
    async def main() -> tuple[Report, HostileTarget]:
        async with hostile(redirects_later) as target:
            also = [target.far_address] if allow_also else []
            with Plan.of(beats(folder)) as plan:
                report = await replay_async(plan, target.address, also=also, **options)
            return report, target

    return asyncio.run(main())


def test_another_host_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    report, target = replayed(tmp_path)
    assert report.ended == (
        f"{target.address}: names hosts that you did not: {target.far_address}; "
        f"add --also {target.far_address}, or --follow-advertised"
    )
    assert not target.brokers[1].connections
    assert not report.sent
    assert not report.passed


@pytest.mark.parametrize("options", [{"allow_also": True}, {"follow_advertised": True}])
def test_an_allowed_host_is_named_before_it_gets_requests(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    told: list[tuple[str, int]] = []

    async def main() -> tuple[Report, HostileTarget]:
        async with hostile() as target:
            security = Security(
                tell=lambda text: told.append((text, target.brokers[1].connections))
            )
            also = [target.far_address] if options.pop("allow_also", False) else []
            with Plan.of(beats(tmp_path)) as plan:
                arguments = {"also": also, "security": security, **options}
                return await replay_async(plan, target.address, **arguments), target

    report, target = asyncio.run(main())
    assert report.passed, str(report)
    assert target.seen_far.count("Heartbeat") == 3
    text = f"{target.address} names other hosts, which are contacted too: {target.far_address}"
    assert told == [(text, 0)]


def test_a_host_allowed_on_one_port_is_not_on_others(tmp_path: Path) -> None:
    report, target = replayed(tmp_path, security=Security(also=("127.0.0.2:1",)))
    assert "names hosts that you did not" in report.ended
    assert not target.brokers[1].connections


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
def test_another_host_gets_no_secret_in_plain_text(tmp_path: Path, mechanism: str) -> None:
    security = Security(mechanism=mechanism, username="bob", password="p", token="t")
    report, target = replayed_with_login(tmp_path, security)
    assert report.ended == (
        f"{target.address}: names other hosts, which get no password or token without TLS: "
        f"{target.far_address}; add --tls, or --allow-plaintext-password"
    )
    assert not target.brokers[1].connections


def replayed_with_login(folder: Path, security: Security) -> tuple[Report, HostileTarget]:
    with pytest.MonkeyPatch.context() as patch:
        if security.mechanism.startswith("SCRAM"):
            # The target can't prove that it knows the password.
            patch.setattr("cluster.client.auth.scram_dialogue", lambda *_: plain_dialogue("", ""))
        return replayed(folder, security=security, follow_advertised=True)


def test_a_password_in_plain_text_can_be_allowed(tmp_path: Path) -> None:
    options = {"security": PLAIN, "follow_advertised": True, "allow_plaintext_password": True}
    report, target = replayed(tmp_path, **options)
    assert report.passed, str(report)
    assert "SaslAuthenticate" in target.seen_far


def test_a_request_whose_broker_moves_to_another_host_is_not_sent(tmp_path: Path) -> None:
    report, target = replayed(tmp_path, redirects_later=True)
    assert not report.ended
    assert not target.brokers[1].connections
    assert +Counter(report.verdicts) == {Verdict.SAME: 1, Verdict.LEFT_OUT: 2}
    advice = f"add --also {target.far_address}, or --follow-advertised"
    said = f"{target.far_address}: the target names this host, you did not; {advice}"
    assert said in str(report)


def test_the_command_refuses_in_one_line_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main(*more: str) -> tuple[int, HostileTarget]:
        async with hostile() as target:
            arguments = ["replay", beats(tmp_path), "--to", target.address, "--speed", "max", *more]
            return await asyncio.to_thread(run_command, arguments), target

    status, target = asyncio.run(main())
    out, err = capsys.readouterr()
    assert status == 2
    assert not out
    assert err.startswith(f"kafkashark: {target.address}: names hosts that you did not: 127.0.0.2:")
    assert len(err.splitlines()) == 1
    status, target = asyncio.run(main("--also", "127.0.0.2"))
    assert status == 0
    assert capsys.readouterr().err == (
        f"kafkashark: {target.address} names other hosts, which are contacted too: "
        f"{target.far_address}\n"
    )
