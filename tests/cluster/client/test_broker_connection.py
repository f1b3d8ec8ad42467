from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.client.auth import Security
from cluster.client.broker_connection import BrokerConnection
from cluster.client.endpoint import resolve
from dissector.errors import EncodeError, ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message, decode_request
from tests.replay.support.scripted_broker import (
    HANG_UP,
    Answer,
    Answers,
    Scripted,
    framed,
    offers,
    scripted,
)

HEARTBEAT = KEYS["Heartbeat"]
OFFSET_FOR_LEADER_EPOCH = KEYS["OffsetForLeaderEpoch"]
BEAT = {
    "group_id": "readers",
    "generation_id": 1,
    "member_id": "m",
    "group_instance_id": None,
}
PLAIN = Security(mechanism="PLAIN", username="alice", password="secret")


def throttled(message: Message) -> Answer:
    """Answer a heartbeat with its generation as throttle time, to identify the request."""
    assert message.body is not None
    return {"throttle_time_ms": message.body.generation_id, "error_code": 0}


def heartbeat_body(number: int) -> dict[str, Any]:
    return {**BEAT, "generation_id": number}


def produce(topic_data: list[dict[str, Any]]) -> dict[str, Any]:
    return {"transactional_id": None, "acks": 0, "timeout_ms": 0, "topic_data": topic_data}


async def request_forever(link: BrokerConnection, *request: Any, **options: Any) -> None:
    while True:
        await link.request(*request, **options)


def with_link(
    answers: Answers, do: Callable[[BrokerConnection, Scripted], Awaitable[None]], **options: Any
) -> None:
    async def main() -> None:
        async with scripted(answers) as broker:
            link = await BrokerConnection.open(
                await resolve("127.0.0.1", broker.port, 5), **options
            )
            try:
                await do(link, broker)
            finally:
                link.close()

    asyncio.run(main())


def test_pipelined_requests_are_answered_in_order() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        pending = [link.send(HEARTBEAT, 4, heartbeat_body(number)) for number in range(200)]
        assert link.in_flight == 200
        answers = [await each.response() for each in pending]
        assert [each.throttle_time_ms for each in answers if each] == list(range(200))
        assert link.in_flight == 0
        ids = [message.correlation_id for message in broker.requests]
        assert len(set(ids)) == len(ids)
        assert {message.client_id for message in broker.requests} == {"me"}
        await link.request(HEARTBEAT, 4, heartbeat_body(0), client_id="another")
        assert broker.requests[-1].client_id == "another"
        assert all(each.response_ns and each.response_ns >= each.sent_ns for each in pending)

    with_link({"Heartbeat": throttled}, do, client_id="me")


@pytest.mark.parametrize("version", [0, 3, 4])
def test_request_headers_have_the_format_of_their_version(version: int) -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        answer = await link.request(HEARTBEAT, version, heartbeat_body(7))
        assert answer is not None
        assert answer.error_code == 0
        assert broker.requests[-1].problems == []
        assert broker.requests[-1].api_version == version

    with_link({"Heartbeat": throttled}, do)


def test_correlation_ids_skip_those_reserved_for_sasl() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        link.last_correlation_id = 2**31 - 10
        for number in range(2):
            await link.request(HEARTBEAT, 4, heartbeat_body(number))
        assert [message.correlation_id for message in broker.requests[-2:]] == [2**31 - 9, 1]

    with_link({"Heartbeat": throttled}, do)


def test_requests_without_a_response_are_not_awaited() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        assert await link.request(KEYS["Produce"], 9, produce([]), expects_response=False) is None
        answer = await link.request(HEARTBEAT, 4, heartbeat_body(5))
        assert answer is not None
        assert answer.throttle_time_ms == 5

    with_link({"Heartbeat": throttled, "Produce": lambda _: None}, do)


def test_an_encoding_error_leaves_the_connection_usable() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        with pytest.raises(EncodeError):
            link.send(HEARTBEAT, 4, {"group_id": "readers"})
        assert link.in_flight == 0
        assert await link.request(HEARTBEAT, 4, heartbeat_body(1)) is not None

    with_link({"Heartbeat": throttled}, do)


def test_a_stalled_broker_is_an_error() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        link.timeout_s = 0.05
        first, second = (
            link.send(HEARTBEAT, 4, heartbeat_body(1)),
            link.send(HEARTBEAT, 4, heartbeat_body(2)),
        )
        for each in (first, second):
            with pytest.raises(ReplayError, match=r"did not respond to Heartbeat v4 in 0\.05 s"):
                await each.response()
        with pytest.raises(ReplayError, match="did not respond"):
            link.send(HEARTBEAT, 4, heartbeat_body(3))

    with_link({"Heartbeat": lambda _: None}, do)


def test_a_response_without_a_request_is_an_error() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        assert await link.request(HEARTBEAT, 4, heartbeat_body(1)) is not None
        with pytest.raises(ReplayError, match="without a request"):
            await request_forever(link, HEARTBEAT, 4, heartbeat_body(1))

    def twice(message: Message) -> Answer:
        return framed(message, {"throttle_time_ms": 0, "error_code": 0}) * 2

    with_link({"Heartbeat": twice}, do)


def test_a_closed_connection_is_an_error() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        pending = [link.send(HEARTBEAT, 4, heartbeat_body(number)) for number in range(3)]
        for each in pending:
            with pytest.raises(ReplayError, match="closed the connection while Heartbeat v4 was"):
                await each.response()
        assert link.failure is not None
        assert link.in_flight == 0

    with_link({"Heartbeat": lambda _: HANG_UP}, do)


@pytest.mark.parametrize(
    ("garbage", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "responds in HTTP; this is not a Kafka listener"),
        (b"\x15\x03\x03\0\2\2\x46", "responds in TLS; it requires a TLS connection"),
        (b"\xff\xff\xff\xff", "sent a frame of -1 bytes"),
        (b"\0\0\0\x08\0\0\0\x63abcd", "sent a response with correlation id 99 instead of"),
    ],
)
def test_garbage_is_an_error(garbage: bytes, said: str) -> None:
    async def main() -> None:
        async with scripted({"ApiVersions": lambda _: garbage}) as broker:
            with pytest.raises(ReplayError, match=said) as raised:
                await BrokerConnection.open(await resolve("127.0.0.1", broker.port, 5))
            assert raised.value.address == f"127.0.0.1:{broker.port}"
            assert "\n" not in str(raised.value)

    asyncio.run(main())


def test_an_undecodable_response_leaves_the_connection_usable() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        with pytest.raises(ReplayError, match=r"sent an undecodable response: .*Heartbeat v4"):
            await link.request(HEARTBEAT, 4, heartbeat_body(0))
        assert await link.request(HEARTBEAT, 4, heartbeat_body(1)) is not None

    def first_short(message: Message) -> Answer:
        assert message.body is not None
        if message.body.generation_id:
            return throttled(message)
        assert message.correlation_id is not None
        return b"\0\0\0\5" + message.correlation_id.to_bytes(4, "big") + b"\0"

    with_link({"Heartbeat": first_short}, do)


def test_a_null_that_no_client_reads_leaves_the_connection_usable() -> None:
    """Code that follows the fields of a response finds no null where none is declared."""

    async def do(link: BrokerConnection, broker: Scripted) -> None:
        asked: dict[str, Any] = {"topics": []}
        for topics in (None, [{"name": "orders", "partitions": None}]):
            answers["topics"] = topics
            with pytest.raises(ReplayError, match="OffsetForLeaderEpoch v2 with a null for a list"):
                await link.request(OFFSET_FOR_LEADER_EPOCH, 2, asked)
        answers["topics"] = []
        assert await link.request(OFFSET_FOR_LEADER_EPOCH, 2, asked) is not None

    answers: dict[str, Any] = {"throttle_time_ms": 0}
    with_link({"OffsetForLeaderEpoch": lambda _: answers}, do)


def test_a_null_text_is_read() -> None:
    """As librdkafka's mock answers with an error."""

    async def do(link: BrokerConnection, broker: Scripted) -> None:
        found = await link.request(KEYS["FindCoordinator"], 1, {"key": "g", "key_type": 0})
        assert found is not None
        assert (found.error_code, found.host) == (15, None)

    answer = {"error_code": 15, "node_id": -1, "host": None, "port": -1, "throttle_time_ms": 0}
    with_link({"FindCoordinator": lambda _: answer}, do)


def test_a_closed_port_is_an_error() -> None:
    async def main() -> None:
        async with scripted({}) as broker:
            pass
        with pytest.raises(ReplayError, match="refused the connection; is the address right"):
            await BrokerConnection.open(await resolve("127.0.0.1", broker.port, 5))

    asyncio.run(main())


@pytest.mark.parametrize("offered", [[(18, 0, 2)], []])
def test_api_versions_falls_back_to_versions_of_an_older_broker(
    offered: list[tuple[int, int, int]],
) -> None:
    """It refuses in v0, possibly with its own versions (KIP-511)."""

    def answer(message: Message) -> Answer:
        if message.api_version in (0, 2):
            return offers(Heartbeat=(0, 3))(message)
        body = {
            "error_code": 35,
            "api_keys": [dict(zip(KEY_FIELDS, each, strict=True)) for each in offered],
        }
        message.api_version = 0
        return framed(message, body)

    async def do(link: BrokerConnection, broker: Scripted) -> None:
        assert link.versions == {HEARTBEAT: (0, 3)}

    with_link({"ApiVersions": answer}, do)


KEY_FIELDS = ("api_key", "min_version", "max_version")


def test_a_broker_that_refuses_all_versions_is_an_error() -> None:
    async def main() -> None:
        refusal = {"error_code": 58, "api_keys": [], "throttle_time_ms": 0}
        async with scripted({"ApiVersions": lambda _: refusal}) as broker:
            with pytest.raises(ReplayError, match="ApiVersions failed: SASL_AUTHENTICATION_FAILED"):
                await BrokerConnection.open(await resolve("127.0.0.1", broker.port, 5))

    asyncio.run(main())


def test_requests_on_a_closed_connection_fail() -> None:
    async def do(link: BrokerConnection, broker: Scripted) -> None:
        pending = link.send(HEARTBEAT, 4, heartbeat_body(1))
        link.close()
        with pytest.raises(ReplayError, match="we closed"):
            await pending.response()

    with_link({"Heartbeat": lambda _: None}, do)


CERTIFICATE = Path(__file__).parents[1] / "loopback.pem"
"""Signed by itself, good for 127.0.0.1 for a hundred years, with its key; of use to nobody."""


def served_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def test_tls_with_a_trusted_certificate() -> None:
    async def main() -> None:
        trusted = Security.read(authority_file=CERTIFICATE, environment={})
        async with scripted({"Heartbeat": throttled}, served_tls()) as broker:
            link = await BrokerConnection.open(await resolve("127.0.0.1", broker.port, 5), trusted)
            assert await link.request(HEARTBEAT, 4, heartbeat_body(1)) is not None
            link.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("served", "host", "security", "said"),
    [
        (True, "127.0.0.1", {"tls": True}, "its certificate is not trusted: self"),
        (True, "localhost", {"authority_file": CERTIFICATE}, "is not trusted: Hostname mismatch"),
        (False, "127.0.0.1", {"tls": True}, r"no TLS connection: \w.*does not speak TLS"),
        (True, "127.0.0.1", {}, "it requires a TLS connection|closed the connection"),
    ],
)
def test_a_failed_tls_handshake_is_an_error(
    served: bool, host: str, security: dict[str, Any], said: str
) -> None:
    async def main() -> None:
        async with scripted({}, served_tls() if served else None) as broker:
            with pytest.raises(ReplayError, match=said):
                await BrokerConnection.open(
                    await resolve(host, broker.port, 5), Security.read(**security, environment={})
                )

    asyncio.run(main())


def handshake(_: Message) -> Answer:
    return {"error_code": 0, "mechanisms": ["PLAIN"]}


def test_reauthentication_defers_other_requests() -> None:
    lifetimes = [1, 0]

    def authenticated(message: Message) -> Answer:
        return {
            "error_code": 0,
            "error_message": None,
            "auth_bytes": b"",
            "session_lifetime_ms": lifetimes.pop(0) if lifetimes else 0,
        }

    async def do(link: BrokerConnection, broker: Scripted) -> None:
        while link.deferred is None and lifetimes:
            await asyncio.sleep(0)
        pending = [link.send(HEARTBEAT, 4, heartbeat_body(number)) for number in range(3)]
        answers = [await each.response() for each in pending]
        assert [each.throttle_time_ms for each in answers if each] == [0, 1, 2]
        assert [message.api for message in broker.requests] == [
            "ApiVersions",
            *["SaslHandshake", "SaslAuthenticate"] * 2,
            *["Heartbeat"] * 3,
        ]

    answers: Answers = {
        "SaslHandshake": handshake,
        "SaslAuthenticate": authenticated,
        "Heartbeat": throttled,
    }
    with_link(answers, do, security=PLAIN)


def test_a_failed_reauthentication_closes_the_connection() -> None:
    answers_left = [0, 58]

    def authenticated(_: Message) -> Answer:
        code = answers_left.pop(0)
        said = "go away" if code else None
        lifetime = {"session_lifetime_ms": 1}
        return {"error_code": code, "error_message": said, "auth_bytes": b"", **lifetime}

    async def do(link: BrokerConnection, broker: Scripted) -> None:
        while link.deferred is None and answers_left:
            await asyncio.sleep(0)
        with pytest.raises(ReplayError, match=r"could not be renewed: .*go away"):
            await link.request(HEARTBEAT, 4, heartbeat_body(1))

    with_link({"SaslHandshake": handshake, "SaslAuthenticate": authenticated}, do, security=PLAIN)


def test_a_broker_that_stops_reading_is_an_error() -> None:
    async def main() -> None:
        hung = asyncio.Event()

        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            size = int.from_bytes(await reader.readexactly(4), "big")
            message = decode_request(await reader.readexactly(size))
            answer = offers()(message)
            assert isinstance(answer, dict)
            writer.write(framed(message, answer))
            await hung.wait()
            writer.close()

        server = await asyncio.start_server(hang, "127.0.0.1", 0, limit=1024)
        port = server.sockets[0].getsockname()[1]
        link = await BrokerConnection.open(await resolve("127.0.0.1", port, 5))
        link.timeout_s = 0.1
        records = {"index": 0, "records": bytes(1 << 24)}
        body = produce([{"name": "t", "partition_data": [records]}])
        with pytest.raises(ReplayError, match=r"took no bytes for 0\.1 s"):
            await request_forever(link, KEYS["Produce"], 9, body, expects_response=False)
        hung.set()
        server.close()

    asyncio.run(main())
