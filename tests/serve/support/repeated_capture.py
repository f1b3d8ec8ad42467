"""A client that repeats the requests of a capture, and compares the answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from construct import Container

from dissector.public import open_capture
from serve.public import Cassette
from serve.report.serve_document import text_lines
from tests.serve.support.raw_client import RawClient

Difference = tuple[str | None, str]
"""API and path of a field."""

VARY = {
    ("ApiVersions", "finalized_features_epoch"),  # grows in the capture, too
    ("FindCoordinator", "error_message"),
}
"""Fields whose values mean nothing to clients."""


def differences(capture: Path, *, strict: bool = True) -> set[Difference]:
    """
    Repeat the requests of a capture in their order, each connection on one of its own.

    Returns:
        The fields with other values than in the capture; addresses of brokers count as equal where
        they are those of the same broker.
    """
    found = set[Difference]()
    with Cassette(capture, strict=strict) as served, contextlib.ExitStack() as stack:
        clients = dict[int, RawClient]()
        for _, is_response, exchange in steps(capture):
            number, client_id = exchange.connection, exchange.client_id or ""
            if number not in clients:
                clients[number] = stack.enter_context(RawClient(served.bootstrap, client_id))
            client = clients[number]
            if not is_response:
                client.send(impatient(exchange))
                continue
            answer = client.response(exchange.api_key, exchange.api_version)
            assert answer.correlation_id == exchange.correlation_id
            expected, body = plain(exchange.response.body), plain(answer.body)
            replace_addresses(expected, served.addresses)
            found |= {(exchange.api, path) for path in differing(expected, body)}
        assert not served.misses, "\n".join(text_lines(served.report))
    return found - VARY


def steps(capture: Path) -> list[tuple[int | None, bool, Any]]:
    """Return packet, whether it is the response, and exchange, in the order of the capture."""
    answered = [each for each in open_capture(capture) if each.status == "answered"]
    return sorted(
        [
            step
            for each in answered
            for step in ((each.request_packet, False, each), (each.response_packet, True, each))
        ],
        key=lambda step: step[:2],
    )


def impatient(exchange: Any) -> bytes:
    """Return a request that waits for nothing, with its size."""
    request, frame = exchange.request, bytes(exchange.request.frame)
    if "max_wait_ms" in request.body:
        body = Container(request.body, max_wait_ms=0)
        frame = frame[: request.body_start] + request.schema.codec(request.api_version).build(body)
    return len(frame).to_bytes(4, "big") + frame


def plain(value: Any) -> Any:
    """Return decoded values as dicts and lists."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if not name.startswith("_")}
    return [plain(each) for each in value] if isinstance(value, list) else value


def replace_addresses(value: Any, addresses: dict[int, str]) -> None:
    """Replace the captured addresses of brokers by those of the listeners."""
    if isinstance(value, dict):
        node = value.get("node_id", value.get("broker_id"))
        if "port" in value and node in addresses:
            value["host"], _, port = addresses[node].rpartition(":")
            value["port"] = int(port)
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            replace_addresses(each, addresses)


def differing(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of different values, without indexes."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in expected.keys() | found.keys():
            yield from differing(expected.get(name), found.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for one, other in zip(expected, found, strict=True):
            yield from differing(one, other, path)
    elif expected != found:
        yield path
