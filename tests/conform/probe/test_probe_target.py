"""State of a target, and requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cluster.client.auth import Security
from cluster.client.cluster import CoordinatorType
from conform.probe.probe_target import NotJudged, Target, error_names
from dissector.cli import main as run_command
from dissector.errors import ReplayError, UsageError
from dissector.protocol.messages import Message
from tests.replay.support.hostile_target import HostileTarget, hostile
from tests.replay.support.scripted_broker import (
    HANG_UP,
    Answer,
    Answers,
    offers,
    scripted,
    single_broker,
)

NOT_COORDINATOR, UNKNOWN_TOPIC = 16, 3


def with_target(answers: Answers, do: Callable[[Target], Awaitable[None]]) -> None:
    async def main() -> None:
        ports: list[int] = []
        async with scripted({**single_broker(ports), **answers}) as broker:
            ports.append(broker.port)
            target = await Target.connect(f"127.0.0.1:{broker.port}", Security(), 20.0, False)
            try:
                await do(target)
            finally:
                target.close()

    asyncio.run(main())


def test_versions_and_brokers_are_requested_from_a_target() -> None:
    async def do(target: Target) -> None:
        assert target.offered == {18: (0, 3), 3: (2, 20)}
        assert list(target.versions("Metadata")) == list(range(2, 14))
        assert list(target.versions("Metadata", since=12, until=12)) == [12]
        assert target.newest_version("Metadata", until=9) == 9
        assert target.nodes.keys() == {1}
        with pytest.raises(NotJudged, match="offers no Fetch"):
            target.newest_version("Fetch")

    with_target({"ApiVersions": offers(ApiVersions=(0, 3), Metadata=(2, 20))}, do)


def test_api_versions_falls_back_for_an_old_broker() -> None:
    offered = offers(ApiVersions=(0, 0))
    versions: list[int | None] = []

    def only_v0(message: Message) -> Answer:
        versions.append(message.api_version)
        return HANG_UP if message.api_version else offered(message)

    async def do(target: Target) -> None:
        assert target.offered == {18: (0, 0)}
        assert versions == [3, 0]

    with_target({"ApiVersions": only_v0}, do)


def test_requests_are_retried_until_the_broker_is_ready() -> None:
    errors = iter([NOT_COORDINATOR, NOT_COORDINATOR, 0])

    async def do(target: Target) -> None:
        exchange = await target.request("Heartbeat", {"group_id": "g"})
        assert exchange.field("error_code") == 0
        assert error_names(exchange) == set()

    with_target({"Heartbeat": lambda _: {"error_code": next(errors)}}, do)


def test_requests_with_any_valid_response_are_not_retried() -> None:
    async def do(target: Target) -> None:
        exchange = await target.request("Heartbeat", {"group_id": "g"}, retry=False)
        assert error_names(exchange) == {"NOT_COORDINATOR"}

    with_target({"Heartbeat": lambda _: {"error_code": NOT_COORDINATOR}}, do)


def test_a_closed_connection_is_reopened() -> None:
    answers: list[Answer] = [HANG_UP, {}]

    async def do(target: Target) -> None:
        assert (await target.request("Heartbeat", {})).failure == "closed the connection"
        assert (await target.request("Heartbeat", {})).body is not None

    with_target({"Heartbeat": lambda _: answers.pop(0)}, do)


def test_coordinators_are_cached() -> None:
    async def do(target: Target) -> None:
        assert await target.coordinator(CoordinatorType.GROUP, "g") == 1
        assert await target.coordinator(CoordinatorType.GROUP, "g") == 1

    with_target({}, do)


def test_rules_without_a_coordinator_are_not_judged() -> None:
    async def do(target: Target) -> None:
        with pytest.raises(NotJudged, match="INVALID_REQUEST"):
            await target.coordinator(CoordinatorType.GROUP, "g")

    refused = {"coordinators": [{"key": "g", "error_code": 42}]}
    with_target({"FindCoordinator": lambda _: refused}, do)


def test_a_target_other_than_a_broker_is_an_error() -> None:
    async def main() -> None:
        async with scripted({"ApiVersions": lambda _: {"error_code": 41}}) as broker:
            await Target.connect(f"127.0.0.1:{broker.port}", Security(), 20.0, False)

    with pytest.raises(ReplayError, match="NOT_CONTROLLER"):
        asyncio.run(main())
    with pytest.raises(UsageError):
        asyncio.run(Target.connect("no address:at all", Security(), 1.0, False))


def test_a_target_that_names_other_hosts_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def main() -> tuple[int, HostileTarget]:
        async with hostile() as target:
            arguments = ["conform", "--target", target.address, "--select", "P01"]
            return await asyncio.to_thread(run_command, arguments), target

    status, target = asyncio.run(main())
    far = target.far_address
    assert status == 2
    assert capsys.readouterr().err == (
        f"kafkashark: {target.address}: names hosts that you did not: {far}; "
        f"add --also {far}, or --follow-advertised\n"
    )
    assert not target.brokers[1].connections


def test_a_target_may_be_allowed_to_name_other_hosts() -> None:
    async def main() -> None:
        async with hostile() as hostile_target:
            security = Security(also=(hostile_target.far_address,), tell=told.append)
            target = await Target.connect(hostile_target.address, security, 20.0, False)
            try:
                await target.request("Heartbeat", {}, node=2)
            finally:
                target.close()
            assert hostile_target.seen_far == ["Heartbeat"]

    told: list[str] = []
    asyncio.run(main())
    assert len(told) == 1


def test_no_request_goes_to_a_coordinator_on_another_host() -> None:
    async def main() -> None:
        async with hostile(redirects_later=True) as hostile_target:
            target = await Target.connect(hostile_target.address, Security(), 20.0, False)
            try:
                hostile_target.is_redirecting = True
                node = await target.coordinator(CoordinatorType.GROUP, "g")
                with pytest.raises(ReplayError, match="the target names this host, you did not"):
                    await target.request("Heartbeat", {}, node=node)
            finally:
                target.close()
            assert not hostile_target.brokers[1].connections

    asyncio.run(main())
