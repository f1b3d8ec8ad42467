"""Listeners under normal and hostile clients."""

from __future__ import annotations

import resource
import signal
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest

from dissector.errors import UsageError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import NO_ID
from serve.public import Cassette
from serve.server.serve_options import ServeOptions, parse_latency
from tests import default_frames as frames
from tests.replay.support.closing import assert_closed
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.raw_client import RawClient
from tests.serve.support.serve_process import serving
from tests.waiting import PATIENCE_S

CAPTURE = SHIPPED / "kafka4-librdkafka-group.pcap"
TOPIC = "kafka4-librdkafka-group.orders"
CERTIFICATE = Path(__file__).parents[2] / "cluster/loopback.pem"
MANY = 1_000


def test_each_captured_broker_has_a_listener_on_loopback() -> None:
    with Cassette(SHIPPED / "kafka4-three-nodes.pcap") as served:
        assert list(served.addresses) == [1, 2, 3]
        assert all(each.startswith("127.0.0.1:") for each in served.addresses.values())
        with RawClient(served.bootstrap) as client:
            brokers = client.ask("Metadata", 9, topics=[]).brokers
    assert {f"{each.host}:{each.port}" for each in brokers} == set(served.addresses.values())


def test_brokers_at_all_addresses_are_where_the_client_is() -> None:
    with Cassette(CAPTURE, options=ServeOptions(host="0.0.0.0")) as served:
        port = served.bootstrap.rpartition(":")[2]
        with RawClient(f"127.0.0.1:{port}") as client:
            (broker,) = client.ask("Metadata", 9, topics=[]).brokers
    assert (broker.host, broker.port) == ("127.0.0.1", int(port))


def test_brokers_in_a_container_have_the_name_that_clients_know() -> None:
    options = ServeOptions(host="0.0.0.0", advertised_host="localhost")
    with Cassette(CAPTURE, options=options) as served:
        assert served.bootstrap.startswith("localhost:")
        with RawClient(served.bootstrap) as client:
            (broker,) = client.ask("Metadata", 9, topics=[]).brokers
    assert f"{broker.host}:{broker.port}" == served.bootstrap


def test_another_version_gets_the_same_response() -> None:
    with Cassette(CAPTURE) as served, RawClient(served.bootstrap) as client:
        wanted = [{"name": TOPIC, "topic_id": NO_ID}]
        (refused,) = client.ask("Metadata", 9, topics=wanted).topics
        assert refused.error_code, "it was created then"
        for version in (4, 9, 12):
            (topic,) = client.ask("Metadata", version, topics=wanted).topics
            assert (topic.name, len(topic.partitions)) == (TOPIC, 2)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x02\x00\x00",
        frames.sized(b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff"),
        frames.sized(b"\x00\x00\x00\x0c\x00\x00\x00\x01\xff\xff\xff"),
    ],
)
def test_garbage_ends_its_connection_only(garbage: bytes) -> None:
    with Cassette(CAPTURE) as served, RawClient(served.bootstrap) as good:
        with RawClient(served.bootstrap) as client:
            client.send(garbage)
            assert client.is_closed()
        assert good.ask("Metadata", 9, topics=[]).brokers
    assert served.report.garbage.total() == 1
    assert not served.misses


def test_a_frame_size_alone_allocates_no_memory() -> None:
    with Cassette(CAPTURE) as served, ExitStack() as stack:
        for _ in range(50):
            client = stack.enter_context(RawClient(served.bootstrap))
            client.send((90 << 20).to_bytes(4, "big") + b"\0" * 100)
        good = stack.enter_context(RawClient(served.bootstrap))
        assert good.ask("Metadata", 9, topics=[]).brokers


def large_fetch() -> bytes:
    key = KEYS["Fetch"]
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    part |= {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    topic = {"topic": "librdkafka-large.orders", "partitions": [part]}
    return frames.request(key, 12, 1, max_bytes=1 << 20, topics=[topic])


def test_a_stalled_client_does_not_delay_others() -> None:
    with (
        Cassette(SHIPPED / "librdkafka-large.pcap.gz") as served,
        RawClient(served.bootstrap) as slow,
        RawClient(served.bootstrap) as good,
    ):
        slow.send(large_fetch() * 500)
        assert good.ask("Metadata", 9, topics=[]).brokers
        assert len(slow.frame()) > 200_000
    assert served.report.counts["Fetch"] < 500, "no more requests are read than responses are taken"


def test_the_end_does_not_wait_for_stalled_clients() -> None:
    with ExitStack() as clients:
        with Cassette(SHIPPED / "librdkafka-large.pcap.gz") as served:
            slow = clients.enter_context(RawClient(served.bootstrap))
            slow.send(large_fetch() * 500)
            assert slow.frame()
        slow.assert_closed()


def test_many_clients_are_served_concurrently() -> None:
    with Cassette(CAPTURE) as served, ExitStack() as stack:
        clients = [stack.enter_context(RawClient(served.bootstrap)) for _ in range(MANY)]
        for client in clients:
            assert client.ask("Metadata", 9, topics=[]).brokers
    assert served.report.connections == MANY


def test_connections_have_a_limit() -> None:
    options = ServeOptions(max_connections=1)
    with Cassette(CAPTURE, options=options) as served, RawClient(served.bootstrap) as first:
        assert first.ask("Metadata", 9, topics=[]).brokers
        with RawClient(served.bootstrap) as second:
            assert second.is_closed()
    assert served.report.garbage == {"too many connections": 1}


def test_an_address_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(UsageError, match="address in use"),
            Cassette(CAPTURE, options=ServeOptions(port=port)),
        ):
            pass


def test_listeners_may_use_tls() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    with Cassette(CAPTURE, options=ServeOptions(tls=context)) as served:
        host, _, port = served.bootstrap.rpartition(":")
        trusting = ssl.create_default_context(cafile=CERTIFICATE)
        trusting.check_hostname = False
        with (
            socket.create_connection((host, int(port)), PATIENCE_S) as plain,
            trusting.wrap_socket(plain) as client,
        ):
            client.sendall(frames.request(KEYS["ApiVersions"], 3, 1))
            assert int.from_bytes(client.recv(4), "big") > 100


def test_too_new_a_version_of_api_versions_is_answered_in_version_0() -> None:
    with Cassette(CAPTURE) as served, RawClient(served.bootstrap) as client:
        key = KEYS["ApiVersions"]
        client.send(frames.sized(key.to_bytes(2, "big") + b"\0\x63\0\0\0\1\xff\xff\0"))
        message = client.response(key, 99)
        assert message.body is not None
        assert (message.api_version, message.body.error_code) == (0, 35)
        assert [each.api_key for each in message.body.api_keys] == [key]


def test_a_listener_without_sasl_refuses_logins() -> None:
    capture = SHIPPED / "kafka4-sweep-admin.pcap"
    with Cassette(capture) as served, RawClient(served.bootstrap) as client:
        answer = client.ask("SaslHandshake", 1, mechanism="PLAIN")
    assert answer.error_code == error_code("ILLEGAL_SASL_STATE")


@pytest.mark.parametrize(("latency", "is_answered"), [(1e9, False), ("none", True)])
def test_responses_have_the_given_latency(latency: float | str, is_answered: bool) -> None:
    with (
        Cassette(CAPTURE, latency=latency) as served,
        RawClient(served.bootstrap) as slow,
        RawClient(served.bootstrap) as quick,
    ):
        slow.send_request("Metadata", 9, topics=[])
        for _ in range(100):
            assert quick.ask("ApiVersions", 3).api_keys
        assert slow.is_answered() is is_answered


def test_latencies_are_parsed() -> None:
    assert [parse_latency(each) for each in ("none", "recorded", "0.5")] == [0, 1, 0.5]
    for wrong in ("fast", "-1", "inf", "nan"):
        with pytest.raises(UsageError):
            parse_latency(wrong)


@pytest.mark.long
@pytest.mark.parametrize("is_tls", [False, True])
def test_the_end_closes_connections_being_accepted(is_tls: bool) -> None:
    context = None
    if is_tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE)
    for _ in range(10):
        with Cassette(CAPTURE, options=ServeOptions(tls=context)) as served:
            host, _, port = served.bootstrap.rpartition(":")
            clients = [socket.create_connection((host, int(port))) for _ in range(5)]
        for client in clients:
            assert_closed(client)
            client.close()


def test_the_largest_of_too_many_unfinished_requests_is_closed() -> None:
    options = ServeOptions(max_unfinished_bytes=1_000_000)
    with (
        Cassette(CAPTURE, options=options) as served,
        RawClient(served.bootstrap) as large,
        RawClient(served.bootstrap) as small,
        RawClient(served.bootstrap) as last,
    ):
        large.send((90 << 20).to_bytes(4, "big") + bytes(700_000))
        small.send((90 << 20).to_bytes(4, "big") + bytes(200_000))
        # In whatever order they are read, the limit is passed when the first has the most.
        last.send((90 << 20).to_bytes(4, "big") + bytes(350_000))
        assert large.is_closed()
        with RawClient(served.bootstrap) as client:
            assert client.ask("ApiVersions", 3).api_keys
        assert not small.is_answered()
    dropped = "largest of too many bytes in unfinished requests"
    assert served.report.garbage == {dropped: 1}


def test_requests_of_one_client_leave_turns_to_others() -> None:
    many = 5_000
    pipelined = b"".join(frames.request(KEYS["ApiVersions"], 3, each) for each in range(many))
    with (
        Cassette(CAPTURE) as served,
        RawClient(served.bootstrap) as busy,
        RawClient(served.bootstrap) as other,
    ):
        busy.send(pipelined)
        for _ in range(3):
            assert other.ask("ApiVersions", 3).api_keys
        assert len(served.requests) < many


@pytest.mark.long
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit of Linux")
def test_a_server_without_file_handles_goes_on_when_it_has_some() -> None:
    with serving(CAPTURE) as (process, bootstrap):
        host, _, port = bootstrap.rpartition(":")
        with RawClient(bootstrap) as before:
            assert before.ask("ApiVersions", 3).api_keys
            handles = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (handles + 2, limits[1]))
            more = [socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(20)]
            assert process.stderr is not None
            lines = [process.stderr.readline(), process.stderr.readline()]
            assert lines[1] == (
                "kafkashark: no connections can be accepted at the moment: Too many open files\n"
            )
            assert before.ask("ApiVersions", 3).api_keys
            for each in more:
                each.close()
            with RawClient(bootstrap) as after:
                assert after.ask("ApiVersions", 3).api_keys
            more = [socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(20)]
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_S)
        for each in more:
            each.close()
    assert process.returncode == 0
    assert len(err.splitlines()) <= 20
    assert "Traceback" not in err
