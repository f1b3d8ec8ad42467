"""
A broker in a separate process that answers all requests immediately.

    python -m benchmarks.broker PARTITIONS

prints its port. Each connection decodes only its first Produce request; the response becomes a
template for later ones, with an increasing offset. Other responses are cached for all connections.
The cost of the broker is thus negligible.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from construct import Container

from dissector.protocol.apis import all_apis, api, api_name
from dissector.protocol.headers import PRODUCE, response_header_version
from dissector.protocol.messages import decode_request
from tests.replay.support.scripted_broker import filled

TOPIC = "orders"

_OFFSET = 0x0123456789ABCDEF
"""Placeholder of the offset in the template of a Produce response."""


@contextlib.contextmanager
def answering(partitions: int) -> Iterator[int]:
    """Run a broker with one topic of `partitions` partitions; yield its port."""
    command = (sys.executable, "-m", "benchmarks.broker", str(partitions))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


class Answering(asyncio.Protocol):
    """One connection."""

    def __init__(self, port: int, partitions: int) -> None:
        self._port = port
        self._partitions = partitions
        self._arrived = bytearray()
        self._template: tuple[bytes, bytes] | None = None
        self._offset = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Write the responses to all complete requests together."""
        arrived = self._arrived
        arrived += data
        start, there = 0, len(arrived)
        out: list[bytes] = []
        while there - start >= 4:
            end = start + 4 + int.from_bytes(arrived[start : start + 4], "big")
            if end > there:
                break
            if self._template is not None and arrived[start + 4 : start + 6] == b"\0\0":
                before, after = self._template
                correlation_id = arrived[start + 8 : start + 12]
                offset = self._offset.to_bytes(8, "big")
                out.append(before[:4] + correlation_id + before[8:] + offset + after)
                self._offset += 1
            else:
                out.append(self._answer(bytes(arrived[start + 4 : end])))
            start = end
        del arrived[:start]
        self._transport.write(b"".join(out))

    def _answer(self, frame: bytes) -> bytes:
        request = decode_request(frame)
        key, version, number = request.api_key, request.api_version, request.correlation_id
        assert key is not None
        assert version is not None
        assert number is not None
        if key == PRODUCE:
            assert request.body is not None
            body = _body(key, version, _stored(request.body))
        else:
            body = _constant_response(key, version, self._port, self._partitions)
        built = (4 + len(body)).to_bytes(4, "big") + number.to_bytes(4, "big") + body
        if key == PRODUCE:
            before, _, after = built.partition(_OFFSET.to_bytes(8, "big"))
            self._template = before, after
            built = before + self._offset.to_bytes(8, "big") + after
            self._offset += 1
        return built


def _body(key: int, version: int, fields: dict[str, Any]) -> bytes:
    """Return the bytes of a response after its correlation id."""
    found = api(key)
    assert found is not None
    tags = b"\0" * response_header_version(key, version)
    content = filled(found.response.fields, version, fields)
    return tags + found.response.codec(version).build(content)


@cache
def _constant_response(key: int, version: int, port: int, partitions: int) -> bytes:
    """Return a response common to all connections, from its header's tags on."""
    return _body(key, version, _constant_fields(api_name(key), port, partitions))


def _constant_fields(name: str, port: int, partitions: int) -> dict[str, Any]:
    """Return the nonzero fields of a response."""
    if name == "ApiVersions":
        return {
            "api_keys": [
                {
                    "api_key": each.key,
                    "min_version": each.request.versions.low,
                    "max_version": each.request.versions.high,
                }
                for each in all_apis()
            ]
        }
    if name == "Metadata":
        numbers = [{"partition_index": each, "leader_id": 1} for each in range(partitions)]
        return {
            "brokers": [{"node_id": 1, "host": "127.0.0.1", "port": port}],
            "topics": [{"name": TOPIC, "partitions": numbers}],
        }
    return {}


def _stored(request: Container) -> dict[str, Any]:
    """Return the nonzero fields of a Produce response."""
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    answers = [{"index": partition.index, "base_offset": _OFFSET}]
    return {"responses": [{"name": topic.name, "partition_responses": answers}]}


async def _serve(partitions: int) -> None:
    loop = asyncio.get_running_loop()
    port = 0
    server = await loop.create_server(
        lambda: Answering(port, partitions), "127.0.0.1", 0, backlog=4096
    )
    port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
