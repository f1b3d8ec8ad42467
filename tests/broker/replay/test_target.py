"""Connections and metadata of a target, with Apache Kafka."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from construct import Container

from cluster.client.auth import Security
from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.fan_in import merge
from cluster.client.router import MISROUTED, route
from cluster.client.topic_admin import EARLIEST, LATEST, create_topics, offsets
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from tests.broker import artifacts
from tests.broker.conftest import StartCluster
from tests.broker.replay.support.recording import fresh
from tests.broker.server_properties import PASSWORD, USER, Shape

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

SECURE = Shape(sasl=True, tls=True)
PATIENCE_S = 90.0
NOT_YET = {14, 15} | MISROUTED
"""What a coordinator says that is new itself: it loads, or does not know yet that it is one."""


def with_target(
    bootstrap: str,
    do: Callable[[Cluster], Awaitable[None]],
    security: Security = Security(),  # noqa: B008 (frozen)
) -> None:
    async def main() -> None:
        async with asyncio.timeout(120):
            cluster = await Cluster.connect(bootstrap.split(","), security, PATIENCE_S)
            try:
                await do(cluster)
            finally:
                cluster.close()

    asyncio.run(main())


@pytest.mark.parametrize("version", artifacts.LINES)
def test_topology_and_versions_of_a_target(kafka: StartCluster, version: str) -> None:
    async def do(cluster: Cluster) -> None:
        assert await create_topics(cluster, {"known": 3}) == ["known"]
        assert await create_topics(cluster, {"known": 3}) == []
        leader = cluster.leader("known", 2)
        assert leader is not None
        assert leader.epoch >= 0
        topic_id = cluster.topic_id("known")
        assert topic_id is not None
        assert cluster.topic_name(topic_id) == "known"
        for kind in (CoordinatorType.GROUP, CoordinatorType.TRANSACTION):
            assert await cluster.coordinator(kind, "somebody") == 1
        assert await offsets(cluster, [("known", 0), ("known", 9)], LATEST) == {("known", 0): 0}
        await cluster.refresh(["not-there"])
        assert "not-there" not in cluster.topics
        assert "known" in cluster.topics

    with_target(kafka(Shape(version)).bootstrap(), do)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_login(kafka: StartCluster, mechanism: str) -> None:
    async def do(cluster: Cluster) -> None:
        link = await cluster.open(1)
        answer = await link.request(KEYS["DescribeUserScramCredentials"], 0, {"users": None})
        assert answer is not None
        assert [user.user for user in answer.results] == [USER]
        link.close()

    security = Security(mechanism=mechanism, username=USER, password=PASSWORD)
    with_target(kafka(SECURE).bootstrap("SASL_PLAINTEXT"), do, security)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_sasl_refuses_a_wrong_password(kafka: StartCluster, mechanism: str) -> None:
    security = Security(mechanism=mechanism, username=USER, password="guessed")
    expect(kafka(SECURE).bootstrap("SASL_PLAINTEXT"), security, f"{mechanism} failed: Authent")


def test_a_mechanism_not_offered_is_an_error(kafka: StartCluster) -> None:
    security = Security(mechanism="OAUTHBEARER", token="a.b.c")
    expect(kafka(SECURE).bootstrap("SASL_PLAINTEXT"), security, "it offers: .*SCRAM-SHA-512")


def test_without_authentication_the_broker_closes_the_connection(kafka: StartCluster) -> None:
    bootstrap = kafka(SECURE).bootstrap("SASL_PLAINTEXT")
    expect(bootstrap, Security(), "closed the connection while Metadata")


def test_tls_with_the_certificate(kafka: StartCluster) -> None:
    async def do(cluster: Cluster) -> None:
        assert list(cluster.brokers) == [1]

    target = kafka(SECURE)
    trusted = Security.read(authority_file=target.certificate, environment={})
    with_target(target.bootstrap("SSL"), do, trusted)
    expect(target.bootstrap("SSL"), Security.read(tls=True, environment={}), "is not trusted")
    expect(target.bootstrap("PLAINTEXT"), trusted, "perhaps it does not speak TLS")
    expect(
        target.bootstrap("SSL"), Security(), "it requires a TLS connection|closed the connection"
    )


def expect(bootstrap: str, security: Security, said: str) -> None:
    async def do(_: Cluster) -> None:
        raise AssertionError("we were let in")

    with pytest.raises(ReplayError, match=said):
        with_target(bootstrap, do, security)


OAUTH = Shape(
    sasl=True,
    properties=(
        ("sasl.enabled.mechanisms", "PLAIN,OAUTHBEARER"),
        (
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="admin";',
        ),
        ("connections.max.reauth.ms", "1500"),
    ),
)
"""Takes unsigned tokens, as Kafka does by default, for short sessions."""


def token(lifetime_s: float) -> str:
    now = time.time()
    claims = {"sub": USER, "iat": now - 1, "exp": now + lifetime_s}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def test_oauthbearer_login_until_the_token_expires(kafka: StartCluster) -> None:
    async def do(cluster: Cluster) -> None:
        await cluster.refresh()

    bootstrap = kafka(OAUTH).bootstrap("SASL_PLAINTEXT")
    with_target(bootstrap, do, Security(mechanism="OAUTHBEARER", token=token(3600)))
    expired = Security(mechanism="OAUTHBEARER", token=token(-3600))
    expect(bootstrap, expired, "OAUTHBEARER failed: .*invalid_token")


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_a_session_is_renewed(kafka: StartCluster, mechanism: str) -> None:
    """The broker closes connections without reauthentication within 1.5 s."""

    async def do(cluster: Cluster) -> None:
        link = await cluster.open(1)
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < began + 4:
            pending = [link.send(KEYS["ListGroups"], 2, {}) for _ in range(20)]
            for each in pending:
                assert await each.response() is not None
        link.close()

    security = Security(mechanism=mechanism, username=USER, password=PASSWORD, token=token(3600))
    with_target(kafka(OAUTH).bootstrap("SASL_PLAINTEXT"), do, security)


def test_requests_go_to_three_leaders_and_responses_are_merged() -> None:
    async def do(cluster: Cluster) -> None:
        await create_topics(cluster, {"spread": 6})
        leaders = {cluster.leader("spread", each) for each in range(6)}
        assert len({leader.node for leader in leaders if leader}) == 3
        listed = list_offsets("spread", 6, EARLIEST)
        while True:  # until the new leaders accept their role
            (topic,) = (await ask_routed(cluster, "ListOffsets", 7, listed)).topics
            if MISROUTED.isdisjoint(each.error_code for each in topic.partitions):
                break
        got = sorted((each.partition_index, each.error_code) for each in topic.partitions)
        assert got == [(index, 0) for index in range(6)]
        groups = [f"group-{number}" for number in range(12)]
        body = {"groups": groups, "include_authorized_operations": False}
        while True:  # until the new coordinators have loaded their logs
            described = await ask_routed(cluster, "DescribeGroups", 5, body)
            if NOT_YET.isdisjoint(each.error_code for each in described.groups):
                break
        assert sorted(each.group_id for each in described.groups) == sorted(groups)
        assert {each.error_code for each in described.groups} == {0}

    with_cluster_or_skip(Shape(nodes=3), do)


def list_offsets(topic: str, partitions: int, when: int) -> dict[str, Any]:
    each = [
        {"partition_index": index, "current_leader_epoch": -1, "timestamp": when}
        for index in range(partitions)
    ]
    topics = [Container(name=topic, partitions=[Container(one) for one in each])]
    return {"replica_id": -1, "isolation_level": 0, "topics": topics}


async def ask_routed(cluster: Cluster, name: str, version: int, body: dict[str, Any]) -> Container:
    found = api(KEYS[name])
    assert found is not None
    parts = await route(found.key, version, Container(body), cluster, 1)
    assert len(parts) > 1
    answers = []
    for node, part in parts:
        link = await cluster.open(node)
        answer = await link.request(found.key, version, part)
        assert answer is not None
        answers.append(answer)
        link.close()
    return merge(found.response, version, answers)


def with_cluster_or_skip(shape: Shape, do: Callable[[Cluster], Awaitable[None]]) -> None:
    with fresh(shape) as running:
        with_target(running.bootstrap(), do)


def test_a_stopped_broker_is_reported_and_others_respond() -> None:
    async def do(cluster: Cluster) -> None:
        await cluster.refresh()

    with fresh(Shape(nodes=3)) as running:
        bootstrap = running.bootstrap()
        running.stop_node(running.nodes[0], kill=True)
        running.wait_until_ready()
        with_target(bootstrap, do)
        expect(running.nodes[0].address.at("PLAINTEXT"), Security(), "refused the connection")
