"""Sweep of admin requests, and of connection handshakes."""

from __future__ import annotations

from typing import Any

from construct import Container

from tools.record.sweep.client import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SOFTWARE,
    SweepClient,
)
from tools.record.sweep.data_sweep import CREATE_TOPICS, create_topics

DELETE_TOPICS, CREATE_PARTITIONS, ELECT_LEADERS = 20, 37, 43
ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 45, 46
DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES = 32, 33, 44, 74
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS = 34, 35
DESCRIBE_QUOTAS, ALTER_QUOTAS, DESCRIBE_SCRAM, ALTER_SCRAM = 48, 49, 50, 51
DESCRIBE_QUORUM, UPDATE_FEATURES, DESCRIBE_CLUSTER, UNREGISTER_BROKER = 55, 57, 60, 64
ADD_RAFT_VOTER, REMOVE_RAFT_VOTER = 80, 81
GET_TELEMETRY, PUSH_TELEMETRY = 71, 72
UNREGISTER_CONTROLLER = 94
CREATE_TOKEN, RENEW_TOKEN, EXPIRE_TOKEN, DESCRIBE_TOKEN = 38, 39, 40, 41
TOKEN_KEYS = (CREATE_TOKEN, RENEW_TOKEN, EXPIRE_TOKEN, DESCRIBE_TOKEN)

_TOPIC = "sweep.admin.kept"
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_LITERAL, _READ, _ALLOW = 3, 3, 3
_SCRAM_SHA_256 = 1
_NEWER_THAN_ALL = 99
_CHECKS_CLUSTER = 5
"""The version of ApiVersions with the expected cluster."""


def greetings(client: SweepClient) -> None:
    """Request versions at all versions, then with unknown software; request SASL in vain."""
    for version in client.versions(API_VERSIONS):
        client.request(API_VERSIONS, version, **SOFTWARE)
    meant_for_another(client)
    client.every(SASL_HANDSHAKE, mechanism="PLAIN")


def meant_for_another(client: SweepClient) -> None:
    """Send another cluster's id in ApiVersions: the response requests a rebootstrap (KIP-1242)."""
    if _CHECKS_CLUSTER in client.versions(API_VERSIONS):
        client.request(
            API_VERSIONS, _CHECKS_CLUSTER, **SOFTWARE, cluster_id="not this one", node_id=7
        )


def too_new(client: SweepClient) -> None:
    """Send ApiVersions in a future version, then in the version of the response (KIP-511)."""
    with client.together(API_VERSIONS):
        refused = client.say_new(API_VERSIONS, _NEWER_THAN_ALL)
        assert refused is not None, "no response to ApiVersions"
        for each in refused.api_keys:
            client.request(each.api_key, each.max_version, **SOFTWARE)


def topics(client: SweepClient) -> None:
    """Create topics at all versions, change and delete them."""
    create_topics(client, _TOPIC)
    for version in client.versions(CREATE_TOPICS):
        shape: dict[str, Any] = {"num_partitions": 1, "replication_factor": 1}
        if version % 2:
            assignments = [{"partition_index": 0, "broker_ids": [1]}]
            shape = {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        configs = [{"name": "retention.ms", "value": "3600000"}]
        made = {"name": f"sweep.admin.{version}", **shape, "configs": configs}
        new_topics = [made, {**made, "name": "sweep a bad name"}]
        client.request(CREATE_TOPICS, version, topics=new_topics, timeout_ms=5000)
    for version in client.versions(CREATE_PARTITIONS):
        more = {"name": _TOPIC, "count": version + 2, "assignments": None}
        client.request(CREATE_PARTITIONS, version, topics=[more], timeout_ms=5000)
    elected = [{"topic": _TOPIC, "partitions": [0, 77]}]
    client.every(ELECT_LEADERS, topic_partitions=elected, timeout_ms=5000)
    moved = [{"partition_index": 0, "replicas": [1]}, {"partition_index": 77, "replicas": [9]}]
    client.every(
        ALTER_REASSIGNMENTS, topics=[{"name": _TOPIC, "partitions": moved}], timeout_ms=5000
    )
    client.every(LIST_REASSIGNMENTS, topics=[{"name": _TOPIC, "partition_indexes": [0]}])
    _log_dirs(client)
    for version in client.versions(DELETE_TOPICS):
        names = [f"sweep.admin.{version}", "sweep.unknown"]
        new_topics = [{"name": name} for name in names]
        client.request(
            DELETE_TOPICS, version, topic_names=names, topics=new_topics, timeout_ms=5000
        )


def _log_dirs(client: SweepClient) -> None:
    where = [{"topic": _TOPIC, "partitions": [0]}]
    folders: list[str] = []
    for _, body in client.each(DESCRIBE_LOG_DIRS, topics=where):
        folders = [each.log_dir for each in body.results] if body is not None else folders
    for number, version in enumerate(client.versions(ALTER_REPLICA_LOG_DIRS)):
        moved = [{"name": _TOPIC, "partitions": [0]}]
        folder = folders[number % len(folders)]
        client.request(ALTER_REPLICA_LOG_DIRS, version, dirs=[{"path": folder, "topics": moved}])


def settings(client: SweepClient) -> None:
    """Describe and alter configurations, ACLs, quotas and SCRAM users."""
    topic = {"resource_type": _TOPIC_RESOURCE, "resource_name": _TOPIC}
    of_topic = {**topic, "configuration_keys": ["cleanup.policy", "retention.ms"]}
    broker = {"resource_type": _BROKER_RESOURCE, "resource_name": "1"}
    of_broker = {**broker, "configuration_keys": ["log.retention.hours", "num.io.threads"]}
    kept = [{"name": "retention.ms", "value": "7200000"}]
    client.every(ALTER_CONFIGS, resources=[{**topic, "configs": kept}])
    appended = [{"name": "cleanup.policy", "config_operation": 2, "value": "compact"}]
    wrong = [{"name": "sweep.no.such", "config_operation": 0, "value": "1"}]
    altered = [
        {**topic, "configs": appended},
        {**topic, "resource_name": "sweep.unknown", "configs": wrong},
    ]
    client.every(INCREMENTAL_ALTER_CONFIGS, resources=altered)
    client.every(
        DESCRIBE_CONFIGS,
        resources=[of_topic, of_broker],
        include_synonyms=True,
        include_documentation=True,
    )
    client.every(LIST_CONFIG_RESOURCES, resource_types=[_TOPIC_RESOURCE, _BROKER_RESOURCE])
    acls(client)
    entity = [{"entity_type": "user", "entity_name": "sweep"}]
    rate = [{"key": "producer_byte_rate", "value": 1e6, "remove": False}]
    client.every(ALTER_QUOTAS, entries=[{"entity": entity, "ops": rate}])
    exact = [{"entity_type": "user", "match_type": 0, "match": "sweep"}]
    client.every(DESCRIBE_QUOTAS, components=exact, strict=True)
    user = {"name": "sweep", "mechanism": _SCRAM_SHA_256}
    secret = {"iterations": 4096, "salt": b"salt of the sweep", "salted_password": b"\x07" * 32}
    client.every(ALTER_SCRAM, upsertions=[{**user, **secret}])
    client.every(DESCRIBE_SCRAM, users=[{"name": "sweep"}, {"name": "sweep.unknown"}])
    client.every(ALTER_SCRAM, deletions=[user])


def acls(client: SweepClient) -> None:
    """Create ACLs, describe and delete them, version by version."""
    who = {"operation": _READ, "permission_type": _ALLOW}
    made = {"resource_type": _TOPIC_RESOURCE, "resource_name": "sweep.acl", **who}
    made |= {"resource_pattern_type": _LITERAL, "principal": "User:sweep", "host": "*"}
    wanted = {
        "resource_type_filter": _TOPIC_RESOURCE,
        "resource_name_filter": "sweep.acl",
        "pattern_type_filter": _LITERAL,
        "principal_filter": "User:sweep",
        "host_filter": None,
        **who,
    }
    for number in client.rounds(CREATE_ACLS, DESCRIBE_ACLS, DELETE_ACLS):
        client.request_next(CREATE_ACLS, number, creations=[made])
        client.request_next(DESCRIBE_ACLS, number, **wanted)
        client.request_next(DELETE_ACLS, number, filters=[wanted])


def cluster(client: SweepClient) -> None:
    """Describe the cluster, send changes it must refuse, and push telemetry."""
    client.every(DESCRIBE_CLUSTER, include_cluster_authorized_operations=True)
    metadata_log = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    client.every(DESCRIBE_QUORUM, topics=metadata_log)
    response = client.request(API_VERSIONS, 3, **SOFTWARE)
    assert response is not None, "no response to ApiVersions"
    same = [
        {"feature": each.name, "max_version_level": each.max_version_level, "upgrade_type": 1}
        for each in response.finalized_features
    ]
    client.every(UPDATE_FEATURES, feature_updates=same, validate_only=True)
    unknown = [{"feature": "sweep.version", "max_version_level": 1, "upgrade_type": 1}]
    client.newest(UPDATE_FEATURES, feature_updates=unknown, validate_only=True)
    client.every(UNREGISTER_BROKER, broker_id=99)
    stranger = {"cluster_id": "not this one", "voter_id": 99}
    endpoint = [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 9}]
    client.every(ADD_RAFT_VOTER, **stranger, timeout_ms=1000, listeners=endpoint)
    client.every(REMOVE_RAFT_VOTER, **stranger)
    # Offered only with a metrics plugin, but answered without one, too.
    subscriptions = client.request(GET_TELEMETRY, 0)
    if subscriptions is not None:
        who = {"client_instance_id": subscriptions.client_instance_id}
        subscription = {"subscription_id": subscriptions.subscription_id, "terminating": True}
        client.request(PUSH_TELEMETRY, 0, **who, **subscription)


def logins(client: SweepClient, name: str, password: str) -> None:
    """Log in on a SASL listener at all versions, also with raw tokens and wrong passwords."""
    token = f"\0{name}\0{password}".encode()
    for version in client.versions(SASL_AUTHENTICATE):
        for data in (token, f"\0{name}\0wrong".encode()):
            with client.together(SASL_HANDSHAKE, SASL_AUTHENTICATE):
                client.request(SASL_HANDSHAKE, 1, mechanism="PLAIN")
                client.request(SASL_AUTHENTICATE, version, auth_bytes=data)
    with client.together(SASL_HANDSHAKE):
        client.request(SASL_HANDSHAKE, 0, mechanism="PLAIN")
        client.token(SASL_HANDSHAKE, token)
    with client.together(SASL_HANDSHAKE):
        client.request(SASL_HANDSHAKE, 1, mechanism="SWEEP")


def tokens(client: SweepClient) -> None:
    """Create, describe, renew and expire delegation tokens; requires an authenticated client."""
    renewers = [{"principal_type": "User", "principal_name": "sweep"}]
    for number in client.rounds(*TOKEN_KEYS):
        made: Container | None = client.request_next(
            CREATE_TOKEN, number, renewers=renewers, max_lifetime_ms=3_600_000
        )
        client.request_next(DESCRIBE_TOKEN, number, owners=None)
        if made is not None:
            client.request_next(RENEW_TOKEN, number, hmac=made.hmac, renew_period_ms=1_800_000)
            client.request_next(EXPIRE_TOKEN, number, hmac=made.hmac, expiry_time_period_ms=-1)
