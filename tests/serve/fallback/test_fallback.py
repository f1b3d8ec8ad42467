"""Requests without a captured answer go to another cluster, and may be recorded."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from cluster.client.auth import PASSWORD_VARIABLE, Security
from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.errors import UsageError
from dissector.protocol.facts import NO_ID
from dissector.protocol.records import Record, new_batch
from serve.fallback.chosen_fallback import chosen_fallback
from serve.fallback.embedded_cluster import EmbeddedCluster
from serve.fallback.upstream_cluster import UpstreamCluster
from serve.public import Cassette
from serve.server.listener_security import tls_context
from serve.server.serve_options import ServeOptions
from tests.record.support.recorded_cluster import broker_thread
from tests.replay.support.hostile_target import HostileTarget, hostile
from tests.replay.support.replay_captures import SHIPPED
from tests.replay.support.scripted_broker import single_broker
from tests.serve.support.raw_client import RawClient
from tests.serve.support.serve_process import COMMAND, serving
from tests.waiting import PATIENCE_S, wait_until

CAPTURE = SHIPPED / "kafka4-librdkafka-group.pcap"
CERTIFICATE = Path(__file__).parents[2] / "cluster/loopback.pem"
OTHER = "librdkafka-acks"
KNOWN, NEW = "kafka4-librdkafka-group.orders", "new"


def _metadata(client: RawClient, *names: str) -> dict[str, int]:
    topics = [{"name": each, "topic_id": NO_ID} for each in names]
    found = client.ask("Metadata", 9, topics=topics, allow_auto_topic_creation=True)
    return {each.name: each.error_code for each in found.topics}


def _produce(client: RawClient, topic: str) -> tuple[int, int]:
    """Produce a record; return error and offset."""
    records = new_batch([Record(0, 0, 0, b"k", b"v", (), 0, 5)]).to_bytes()
    part = {"index": 0, "records": records}
    data = [{"name": topic, "partition_data": [part]}]
    (answer,) = client.ask("Produce", 8, acks=1, timeout_ms=1000, topic_data=data).responses
    (result,) = answer.partition_responses
    return result.error_code, result.base_offset


def _fetch(client: RawClient, *topics: str) -> dict[str, bytes]:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    part |= {"current_leader_epoch": -1, "log_start_offset": -1}
    wanted = [{"topic": each, "partitions": [part]} for each in topics]
    found = client.ask("Fetch", 11, max_bytes=1 << 20, max_wait_ms=500, topics=wanted)
    return {each.topic: each.partitions[0].records or b"" for each in found.responses}


def test_a_request_is_split_between_capture_and_cluster() -> None:
    with Cassette(CAPTURE) as served, RawClient(served.bootstrap) as client:
        _metadata(client, KNOWN, NEW)
        assert _metadata(client, KNOWN, NEW) == {KNOWN: 0, NEW: 0}
        assert _produce(client, NEW) == (0, 0)
        found = _fetch(client, KNOWN, NEW)
        assert found[KNOWN]
        assert found[NEW]
    assert {each.answered_by for each in served.misses} == {"embedded broker"}
    assert {each.what for each in served.misses} == {f"topic {NEW}"}


def test_recorded_answers_of_a_cluster_can_be_served(tmp_path: Path) -> None:
    added = tmp_path / "added.pcapng"
    with (
        EmbeddedBroker(topics={NEW: 1}) as broker,
        Cassette(CAPTURE, upstream=broker.addresses[0], record=added) as served,
        RawClient(served.bootstrap) as client,
    ):
        assert _metadata(client, NEW) == {NEW: 0}
        assert _produce(client, NEW) == (0, 0)
    with (
        Cassette(CAPTURE, added, strict=True) as served,
        RawClient(served.bootstrap) as client,
    ):
        assert list(served.addresses) == [1]
        assert _metadata(client, NEW) == {NEW: 0}
        assert _produce(client, NEW) == (0, 0)
        assert _fetch(client, NEW)[NEW]
    assert not served.misses


def test_without_a_capture_the_cluster_answers_all() -> None:
    """A group and a transaction too; clients that ask by topic id learn the cluster's."""
    with (
        EmbeddedBroker(topics={NEW: 1}) as broker,
        Cassette(upstream=broker.addresses[0]) as served,
    ):
        quiet = {"bootstrap.servers": served.bootstrap, "log_level": 0}
        producer = Producer(quiet | {"transactional.id": "t"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(NEW, b"value", partition=0)
        producer.commit_transaction(30)
        settings = {"group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer(quiet | settings)
        consumer.subscribe([NEW])
        found = consumer.poll(30)
        assert found is not None
        assert (found.error(), found.value()) == (None, b"value")
        consumer.close()
    assert {each.answered_by for each in served.misses} == {"upstream"}
    with pytest.raises(UsageError, match="no capture, and no --upstream that can be reached"):
        Cassette(upstream="127.0.0.1:1").__enter__()


def test_a_client_that_leaves_takes_its_connections_along() -> None:
    ports: list[int] = []
    answers = {**single_broker(ports), "Heartbeat": lambda _: {"error_code": 0}}
    with broker_thread(answers) as broker:
        ports.append(broker.port)
        with Cassette(CAPTURE, upstream=f"127.0.0.1:{broker.port}") as served:
            opened = broker.open
            for _ in range(3):
                with RawClient(served.bootstrap) as client:
                    client.ask("Heartbeat", 3, group_id="unknown", member_id="m")
                    assert broker.open > opened
                wait_until(lambda: broker.open == opened)
        assert broker.connections >= 4


def test_an_unreachable_cluster_is_a_miss() -> None:
    with (
        Cassette(CAPTURE, upstream="127.0.0.1:1") as served,
        RawClient(served.bootstrap) as client,
    ):
        assert _metadata(client, NEW)[NEW] != 0
    (miss,) = served.misses
    assert "the upstream: 127.0.0.1:1: refused the connection" in miss.what


@contextmanager
def _secured(authorities: Path | None = None) -> Iterator[str]:
    """Serve another capture by TLS to clients with a password; yield the address."""
    listener = ServeOptions(tls=tls_context(CERTIFICATE, None, authorities), password="open")
    with Cassette(SHIPPED / f"{OTHER}.pcap", strict=True, options=listener) as upstream:
        yield upstream.bootstrap


@pytest.mark.thinned(2)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_cluster_may_be_secured(mechanism: str) -> None:
    user = {"mechanism": mechanism, "username": "alice"}
    for password, expected in (("open", True), ("wrong", False)):
        environment = {PASSWORD_VARIABLE: password}
        security = Security.read(**user, authority_file=CERTIFICATE, environment=environment)
        with (
            _secured() as address,
            Cassette(CAPTURE, upstream=address, upstream_security=security) as served,
            RawClient(served.bootstrap) as client,
        ):
            found = _metadata(client, f"{OTHER}.orders")
        assert (found[f"{OTHER}.orders"] == 0) == expected
        (miss,) = served.misses
        assert ("the upstream: " in miss.what) != expected


@pytest.mark.long
def test_a_command_reaches_a_secured_cluster(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("open\n")
    words = ("tls-ca", str(CERTIFICATE), "sasl", "PLAIN", "sasl-user", "alice")
    options = [f"--upstream-{a}={b}" for a, b in zip(words[::2], words[1::2], strict=True)]
    with (
        _secured() as address,
        serving(CAPTURE, "--upstream", address, *options, f"--upstream-sasl-secret={secret}") as (
            _,
            own,
        ),
        RawClient(own) as client,
    ):
        assert _metadata(client, f"{OTHER}.orders") == {f"{OTHER}.orders": 0}


@pytest.mark.long
def test_a_command_shows_its_certificate(tmp_path: Path) -> None:
    whole = CERTIFICATE.read_text()
    at = whole.index("-----BEGIN CERTIFICATE")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    key.write_text(whole[:at])
    certificate.write_text(whole[at:])
    own = (f"--upstream-tls-certificate={certificate}", f"--upstream-tls-key={key}")
    for options, error in ((own, 0), ((), -1)):
        ca = f"--upstream-tls-ca={CERTIFICATE}"
        with (
            _secured(authorities=CERTIFICATE) as address,
            serving(CAPTURE, "--upstream", address, ca, *options) as (process, bootstrap),
        ):
            with RawClient(bootstrap) as client:
                assert _metadata(client, f"{OTHER}.orders") == {f"{OTHER}.orders": error}
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=PATIENCE_S)
        assert ("the upstream: " in out) is not bool(options), "refused without a certificate"


@pytest.mark.long
def test_a_cluster_that_names_other_hosts_is_refused_at_the_start() -> None:
    async def main() -> tuple[int | None, str, HostileTarget]:
        async with hostile() as target:
            process = await asyncio.create_subprocess_exec(
                *(*COMMAND, str(CAPTURE), "--listen", "127.0.0.1:0", "--upstream", target.address),
                stderr=asyncio.subprocess.PIPE,
            )
            _, err = await process.communicate()
            return process.returncode, err.decode(), target

    status, err, target = asyncio.run(main())
    assert status == 2
    far = target.far_address
    assert err == (
        f"kafkashark: {target.address}: names hosts that you did not: {far}; "
        f"add --upstream-also {far}, or --upstream-follow-advertised\n"
    )
    assert not target.brokers[1].connections


def test_a_cluster_may_be_allowed_to_name_other_hosts() -> None:
    told: list[str] = []

    def serve(target: HostileTarget) -> None:
        security = Security(follow_advertised=True, tell=told.append)
        with (
            Cassette(CAPTURE, upstream=target.address, upstream_security=security) as served,
            RawClient(served.bootstrap) as client,
        ):
            client.ask("Heartbeat", 3, group_id="unknown", member_id="m")

    async def main() -> HostileTarget:
        async with hostile() as target:
            await asyncio.to_thread(serve, target)
            return target

    target = asyncio.run(main())
    assert target.seen_far[-1] == "Heartbeat"
    assert len(told) == 1


def test_options_of_a_cluster_require_one() -> None:
    with pytest.raises(UsageError, match="options of --upstream require"):
        chosen_fallback(None, Security(mechanism="PLAIN"), is_strict=False)


def test_records_are_compared_if_strict() -> None:
    with Cassette(CAPTURE, strict=True) as served, RawClient(served.bootstrap) as client:
        assert _produce(client, KNOWN) == (0, 0)
    assert [each.what for each in served.misses] == [
        f"the key of the record at offset 0 of {KNOWN}-0"
    ]


@pytest.mark.parametrize(
    ("upstream", "is_strict", "expected"),
    [
        (None, True, type(None)),
        ("a:1", True, type(None)),
        ("a:1,b:2", False, UpstreamCluster),
        (None, False, EmbeddedCluster),
    ],
)
def test_options_choose_the_fallback(
    upstream: str | None, is_strict: bool, expected: type[object]
) -> None:
    assert type(chosen_fallback(upstream, is_strict=is_strict)) is expected
