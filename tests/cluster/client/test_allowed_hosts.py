from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

import replay
from cluster.client.allowed_hosts import AllowedHosts, HostRefused
from cluster.client.auth import Security
from cluster.client.endpoint import Endpoint
from dissector.errors import UsageError

NAMES = {
    "broker-1": ["10.0.0.1"],
    "alias-of-1": ["10.0.0.1"],
    "broker-2": ["10.0.0.2"],
    "half": ["10.0.0.1", "10.0.0.66"],
    "both": ["10.0.0.1", "10.0.0.2"],
    "localhost": ["127.0.0.1", "::1"],
}


@pytest.fixture(autouse=True)
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Look names up in a table; return the names that were asked for."""
    asked: list[str] = []
    really = socket.getaddrinfo

    def look_up(
        host: str, port: int, *args: Any, type: int = 0, flags: int = 0, **more: Any
    ) -> Any:
        if flags & socket.AI_NUMERICHOST:
            return really(host, port, type=type, flags=flags)
        asked.append(host)
        if host.lower().rstrip(".") not in NAMES:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        found = NAMES[host.lower().rstrip(".")]
        return [each for a in found for each in really(a, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def permitted(to: str, host: str, port: int = 9092, **security: Any) -> Endpoint:
    hosts = AllowedHosts(to.split(","), Security(**security))
    return asyncio.run(hosts.permit(host, port, 5))


@pytest.mark.parametrize(
    ("to", "host"),
    [
        ("localhost:1", "127.0.0.1"),
        ("127.0.0.1:1", "localhost"),
        ("[::1]:1", "0:0:0:0:0:0:0:1"),
        ("127.0.0.1:1", "::ffff:127.0.0.1"),
        ("broker-1:1", "BROKER-1."),
        ("broker-1:1", "alias-of-1"),
        ("broker-1:1", "10.0.0.1"),
        ("10.0.0.1:1", "broker-1"),
        ("broker-2:1,broker-1:1", "alias-of-1"),
        ("both:1", "broker-2"),
        ("nowhere:1,broker-1:1", "alias-of-1"),
    ],
)
def test_names_and_addresses_of_a_host_are_the_same_on_any_port(to: str, host: str) -> None:
    assert permitted(to, host, 12345).places


@pytest.mark.parametrize("host", ["broker-2", "10.0.0.2", "127.0.0.2", "nowhere", "x" * 300, "a\0"])
def test_another_host_is_refused(host: str) -> None:
    with pytest.raises(HostRefused, match="the target names this host, you did not; add --also"):
        permitted("broker-1:9092", host)


def test_only_shared_addresses_are_connected_to() -> None:
    (place,) = permitted("broker-1:1", "half").places
    assert place.address == "10.0.0.1"


def test_a_host_of_the_user_needs_no_other_look_up(looked_up: list[str]) -> None:
    permitted("broker-1:1", "broker-1")
    permitted("127.0.0.1:1", "127.0.0.1")
    assert looked_up == ["broker-1"]


@pytest.mark.parametrize(
    ("also", "host", "port", "is_allowed"),
    [
        ("broker-2", "broker-2", 1, True),
        ("broker-2", "10.0.0.2", 1, True),
        ("10.0.0.2", "broker-2", 1, True),
        ("10.0.0.2:9092", "broker-2", 9092, True),
        ("10.0.0.2:9092", "broker-2", 9093, False),
        ("broker-2:9092", "10.0.0.2", 9093, False),
        ("::1", "localhost", 1, True),
        ("[::1]", "::1", 1, True),
        ("[::1]:2", "::1", 1, False),
    ],
)
def test_more_hosts_can_be_allowed(also: str, host: str, port: int, is_allowed: bool) -> None:
    options = {"also": (also,), "tell": lambda _: None}
    if is_allowed:
        assert permitted("broker-1:9092", host, port, **options).places
    else:
        with pytest.raises(HostRefused):
            permitted("broker-1:9092", host, port, **options)


def test_a_wrong_address_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="not an address"):
        AllowedHosts(["a:1"], Security(also=("b:x",)))


def test_each_other_host_is_told_once() -> None:
    told: list[str] = []
    hosts = AllowedHosts(["broker-1:1"], Security(follow_advertised=True, tell=told.append))

    async def main() -> None:
        brokers = [("broker-1", 1), ("broker-2", 1), ("broker-2", 2), ("nowhere", 1)]
        await hosts.check(brokers, 5)
        await hosts.permit("broker-2", 1, 5)
        await hosts.permit("127.0.0.2", 1, 5)

    asyncio.run(main())
    start = "broker-1:1 names other hosts, which are contacted too: "
    assert told == [f"{start}broker-2:1, broker-2:2", f"{start}127.0.0.2:1"]


def test_many_refused_hosts_are_one_short_line() -> None:
    hosts = AllowedHosts(["broker-1:1"], Security(option_prefix="upstream-"))
    brokers = [(f"10.1.0.{each}", 1) for each in range(1, 200)]
    with pytest.raises(HostRefused) as refused:
        asyncio.run(hosts.check(brokers, 5))
    text = str(refused.value)
    assert len(text) < 400
    assert "10.1.0.4:1 and 12 more" in text
    assert "--upstream-also 10.1.0.1:1" in text


def test_advice_can_be_copied_into_a_shell() -> None:
    with pytest.raises(HostRefused, match=r"add --also '\$\(reboot\):9092', or"):
        permitted("broker-1:1", "$(reboot)")


def test_only_checked_endpoints_are_connected_to() -> None:
    """No other product file looks up a host, makes an endpoint, or opens a socket."""
    root = Path(replay.__file__).parents[1]
    sources = {
        str(file.relative_to(root)): file.read_text()
        for room in ("cluster", "replay", "serve", "conform")
        for file in (root / room).rglob("*.py")
    }

    def files_with(text: str) -> set[str]:
        return {name for name, source in sources.items() if text in source}

    client = "cluster/client/"
    assert files_with("resolve(host") == {f"{client}endpoint.py", f"{client}allowed_hosts.py"}
    assert files_with("Endpoint(") == {f"{client}endpoint.py"}
    assert files_with("create_connection(") == {
        f"{client}endpoint.py",
        "cluster/mock/embedded_broker.py",  # the mock's own address
    }
