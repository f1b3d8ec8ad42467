"""Sweep of requests from brokers and controllers to a controller's listener (KRaft)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.apis import api
from dissector.protocol.embedded.principal import DefaultPrincipalData
from dissector.protocol.headers import RequestHeader
from tools.record.sweep.admin_sweep import acls, greetings
from tools.record.sweep.bodies import body_of
from tools.record.sweep.client import (
    API_VERSIONS,
    CLIENT_ID,
    SOFTWARE,
    SweepClient,
    patiently,
)
from tools.record.sweep.data_sweep import CREATE_TOPICS, FETCH

VOTE, BEGIN_EPOCH, END_EPOCH, DESCRIBE_QUORUM, ALTER_PARTITION = 52, 53, 54, 55, 56
ENVELOPE, FETCH_SNAPSHOT, DESCRIBE_CLUSTER = 58, 59, 60
BROKER_REGISTRATION, BROKER_HEARTBEAT, UNREGISTER_BROKER = 62, 63, 64
ALLOCATE_PRODUCER_IDS, CONTROLLER_REGISTRATION, ASSIGN_REPLICAS_TO_DIRS = 67, 70, 73
ADD_RAFT_VOTER, REMOVE_RAFT_VOTER, UPDATE_RAFT_VOTER = 80, 81, 82

_LOG = "__cluster_metadata"
_LOG_ID = UUID(int=1)
_LEADER, _GUEST = 1, 77
_GUEST_DIR = UUID(int=0x77)
_OF_CONTROLLERS = 2
_ENDPOINT = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 9}
_LISTENER = {"name": "INTERNAL", "host": "127.0.0.1", "port": 9, "security_protocol": 0}


def quorum(client: SweepClient, topic: tuple[str, UUID], snapshot: tuple[int, int]) -> None:
    """
    Send all versions offered by a controller.

    A fake broker registers, so that the controller accepts requests of brokers.

    Args:
        client: Client of the controller's listener.
        topic: Name and id of an existing topic.
        snapshot: End offset and epoch of a snapshot of the metadata log.
    """
    greetings(client)
    log = _described(client)
    _raft(client, log)
    _fetch(client, log, snapshot)
    client.every(DESCRIBE_CLUSTER, endpoint_type=_OF_CONTROLLERS)
    _broker(client, *topic)
    _envelope(client)
    acls(client)
    client.rest(client.offered)


def snapshot_of(log: Path) -> tuple[int, int]:
    """Wait until a node has a snapshot of its metadata log; return its end offset and epoch."""

    def newest() -> str | None:
        made = sorted(path.stem for path in log.glob("*.checkpoint"))
        return made[-1] if made and not made[-1].startswith("0" * 20) else None

    end, _, epoch = patiently("a snapshot", newest).partition("-")
    return int(end), int(epoch)


def _described(client: SweepClient) -> Container:
    """Describe the quorum; return epoch and high watermark of the log."""
    topics = [{"topic_name": _LOG, "partitions": [{"partition_index": 0}]}]
    client.every(DESCRIBE_QUORUM, topics=topics)
    body = client.newest(DESCRIBE_QUORUM, topics=topics)
    assert body is not None, "no response to DescribeQuorum"
    return body.topics[0].partitions[0]


def _raft(client: SweepClient, log: Container) -> None:
    """Request votes, which are refused; announce leaders of current and old epochs."""

    def of(**fields: Any) -> dict[str, Any]:
        return {"topics": [{"topic_name": _LOG, "partitions": [{"partition_index": 0, **fields}]}]}

    epoch = log.leader_epoch
    candidate = {"replica_epoch": epoch, "replica_id": _GUEST, "replica_directory_id": _GUEST_DIR}
    candidate |= {"last_offset_epoch": epoch - 1}
    client.every(VOTE, voter_id=_LEADER, **of(**candidate, last_offset=1, pre_vote=True))
    endpoints = {"leader_endpoints": [_ENDPOINT]}
    known = of(leader_id=_LEADER, leader_epoch=epoch)
    client.every(BEGIN_EPOCH, voter_id=_LEADER, **known, **endpoints)
    gone = of(
        leader_id=_GUEST,
        leader_epoch=0,
        preferred_successors=[_LEADER],
        preferred_candidates=[{"candidate_id": _LEADER, "candidate_directory_id": _GUEST_DIR}],
    )
    client.every(END_EPOCH, **gone, **endpoints)
    who = {"cluster_id": "not this one", "voter_id": _GUEST, "voter_directory_id": _GUEST_DIR}
    client.every(ADD_RAFT_VOTER, **who, timeout_ms=1000, listeners=[_ENDPOINT])
    client.every(REMOVE_RAFT_VOTER, **who)
    feature = {"min_supported_version": 0, "max_supported_version": 1}
    update = {"current_leader_epoch": epoch, "listeners": [_ENDPOINT]}
    client.every(UPDATE_RAFT_VOTER, **who, **update, k_raft_version_feature=feature)


def _fetch(client: SweepClient, log: Container, snapshot: tuple[int, int]) -> None:
    """Fetch the end of the metadata log, and the beginning of a snapshot."""
    epoch = log.leader_epoch
    last = {
        "partition": 0,
        "current_leader_epoch": epoch,
        "last_fetched_epoch": epoch,
        "fetch_offset": log.high_watermark - 1,
        "partition_max_bytes": 1000,
        "replica_directory_id": _GUEST_DIR,
        "high_watermark": log.high_watermark - 1,
    }
    requested = [{"topic": _LOG, "topic_id": _LOG_ID, "partitions": [last]}]
    observer = {"replica_id": _GUEST, "replica_state": {"replica_id": _GUEST}}
    client.every(FETCH, **observer, max_wait_ms=100, min_bytes=1, topics=requested)
    wanted = {
        "partition": 0,
        "current_leader_epoch": epoch,
        "snapshot_id": {"end_offset": snapshot[0], "epoch": snapshot[1]},
        "position": 0,
        "replica_directory_id": _GUEST_DIR,
    }
    topics = [{"name": _LOG, "partitions": [wanted]}]
    client.every(FETCH_SNAPSHOT, replica_id=_GUEST, max_bytes=2000, topics=topics)


def _broker(client: SweepClient, topic: str, topic_id: UUID) -> None:
    described = client.newest(DESCRIBE_CLUSTER, endpoint_type=_OF_CONTROLLERS)
    assert described is not None, "no response to DescribeCluster"
    features = _features(client)
    epoch = -1
    for version in client.versions(BROKER_REGISTRATION):
        epoch = _register(client, version, described.cluster_id, features, epoch)
    who = {"broker_id": _GUEST, "broker_epoch": epoch}
    client.every(BROKER_HEARTBEAT, **who, current_metadata_offset=1, want_fence=True)
    client.every(ALLOCATE_PRODUCER_IDS, **who)
    replicas = [{"topic_id": topic_id, "partitions": [{"partition_index": 7}]}]
    client.every(
        ASSIGN_REPLICAS_TO_DIRS, **who, directories=[{"id": _GUEST_DIR, "topics": replicas}]
    )
    change = {
        "partition_index": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "new_isr": [_LEADER],
        "new_isr_with_epochs": [{"broker_id": _LEADER, "broker_epoch": 1}],
    }
    changed = [{"topic_id": topic_id, "topic_name": topic, "partitions": [change]}]
    client.every(ALTER_PARTITION, **who, topics=changed)
    client.every(
        CONTROLLER_REGISTRATION,
        controller_id=_GUEST,
        incarnation_id=_GUEST_DIR,
        listeners=[{**_LISTENER, "name": "CONTROLLER"}],
        features=features,
    )
    client.every(UNREGISTER_BROKER, broker_id=_GUEST)


def _features(client: SweepClient) -> list[dict[str, Any]]:
    """Return the features of this release."""
    response = client.newest(API_VERSIONS, **SOFTWARE)
    assert response is not None, "no response to ApiVersions"
    return [
        {
            "name": each.name,
            "min_supported_version": each.min_version,
            "max_supported_version": each.max_version,
        }
        for each in response.supported_features
    ]


def _register(
    client: SweepClient, version: int, cluster_id: str, features: list[dict[str, Any]], epoch: int
) -> int:
    """Register the fake broker; return its epoch, or the previous one after a refusal."""
    body = client.request(
        BROKER_REGISTRATION,
        version,
        broker_id=_GUEST,
        cluster_id=cluster_id,
        incarnation_id=_GUEST_DIR,
        listeners=[_LISTENER],
        features=features,
        log_dirs=[_GUEST_DIR],
        previous_broker_epoch=epoch,
    )
    assert body is not None, "no response to BrokerRegistration"
    return epoch if body.error_code else int(body.broker_epoch)


def _envelope(client: SweepClient) -> None:
    """Forward a request in the name of another client, as brokers do (KIP-590)."""
    creating = api(CREATE_TOPICS)
    assert creating is not None
    header = {
        "request_api_key": CREATE_TOPICS,
        "request_api_version": 7,
        "correlation_id": 1,
        "client_id": CLIENT_ID,
    }
    topic = {"name": "sweep.enveloped", "num_partitions": 1, "replication_factor": 1}
    inner = RequestHeader.codec(2).build(header) + body_of(
        creating.request, 7, {"topics": [topic], "validate_only": True}
    )
    principal = DefaultPrincipalData.codec(0).build(
        {"type": "User", "name": "ANONYMOUS", "token_authenticated": False}
    )
    client.every(
        ENVELOPE,
        request_data=inner,
        request_principal=b"\x00\x00" + principal,
        client_host_address=bytes((127, 0, 0, 1)),
    )
