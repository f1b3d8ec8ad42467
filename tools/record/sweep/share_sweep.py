"""The sweep's third part: share groups (KIP-932) and the state that brokers keep of them."""

from __future__ import annotations

import base64
import uuid
from typing import Any
from uuid import UUID

from construct import Container

from tools.record.sweep.client import SweepClient, patiently
from tools.record.sweep.data_sweep import PRODUCE, create_topics, produce, records
from tools.record.sweep.group_sweep import find_coordinator

INCREMENTAL_ALTER_CONFIGS = 44
SHARE_GROUP_HEARTBEAT, SHARE_GROUP_DESCRIBE, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 77, 78, 79
INITIALIZE_STATE, READ_STATE, WRITE_STATE, DELETE_STATE, READ_STATE_SUMMARY = 83, 84, 85, 86, 87
DESCRIBE_OFFSETS, ALTER_OFFSETS, DELETE_OFFSETS = 90, 91, 92
_MEMBER_KEYS = (SHARE_GROUP_HEARTBEAT, SHARE_GROUP_DESCRIBE, SHARE_FETCH, SHARE_ACKNOWLEDGE)
_STATE_KEYS = (INITIALIZE_STATE, READ_STATE, WRITE_STATE, DELETE_STATE, READ_STATE_SUMMARY)
KEYS = (*_MEMBER_KEYS, *_STATE_KEYS, DESCRIBE_OFFSETS, ALTER_OFFSETS, DELETE_OFFSETS)

_TOPIC, _STATE_TOPIC = "sweep.share.read", "sweep.share.state"
_GROUP_RESOURCE, _SET = 32, 0
_ACCEPT, _RENEW = 1, 4
_SHARE_COORDINATOR = 2


def share(client: SweepClient) -> None:
    """Send all versions of share group requests from members and administrators."""
    topic_id = create_topics(client, _TOPIC)[_TOPIC]
    for number in client.rounds(*_MEMBER_KEYS):
        produce(client, client.versions(PRODUCE)[-1], _TOPIC, topic_id, records())
        _member(client, number, topic_id)


def state(client: SweepClient) -> None:
    """Send all versions of the brokers' requests that persist share group state."""
    topic_id = create_topics(client, _STATE_TOPIC)[_STATE_TOPIC]
    for number in client.rounds(*_STATE_KEYS):
        _state(client, number, topic_id)
    client.rest(KEYS)


def _member(client: SweepClient, number: int, topic_id: UUID) -> None:
    group = f"sweep.share.{number}"
    start = {"name": "share.auto.offset.reset", "config_operation": _SET, "value": "earliest"}
    resource = {"resource_type": _GROUP_RESOURCE, "resource_name": group, "configs": [start]}
    client.newest(INCREMENTAL_ALTER_CONFIGS, resources=[resource])
    find_coordinator(client, 4, group)
    who = _join(client, number, group)
    session, acquired = _fetch(client, number, who, topic_id)
    first, last = acquired[0].first_offset, acquired[0].last_offset
    _settle(client, number, who, topic_id, session, (first, last))
    both = [group, "sweep.unknown"]
    client.request_next(
        SHARE_GROUP_DESCRIBE, number, group_ids=both, include_authorized_operations=True
    )
    topics = [{"topic_name": _TOPIC, "partitions": [0]}]
    groups = [{"group_id": group, "topics": topics}, {"group_id": "sweep.unknown", "topics": None}]
    client.request_next(DESCRIBE_OFFSETS, number, groups=groups)
    client.request_next(SHARE_GROUP_HEARTBEAT, number, **who, member_epoch=-1)
    moved = [{"topic_name": _TOPIC, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    client.request_next(ALTER_OFFSETS, number, group_id=group, topics=moved)
    client.request_next(DELETE_OFFSETS, number, group_id=group, topics=[{"topic_name": _TOPIC}])


def _join(client: SweepClient, number: int, group: str) -> dict[str, Any]:
    """Send heartbeats until the member has its partition; return group and member id."""
    who = {"group_id": group, "member_id": _text(uuid.uuid4())}
    epoch = 0

    def assigned() -> bool:
        nonlocal epoch
        wish = {"subscribed_topic_names": [_TOPIC]} if epoch == 0 else {}
        body = client.request_next(SHARE_GROUP_HEARTBEAT, number, **who, member_epoch=epoch, **wish)
        assert body is not None, "no response to ShareGroupHeartbeat"
        epoch = body.member_epoch or epoch
        return body.assignment is not None and bool(body.assignment.topic_partitions)

    patiently("an assignment of the share group", assigned)
    return who


def _fetch(
    client: SweepClient, number: int, who: dict[str, Any], topic_id: UUID
) -> tuple[int, list[Container]]:
    """Fetch until records arrive; return the next session epoch and the acquired records."""
    session = 0
    partition = {"partition_index": 0, "partition_max_bytes": 10_000}
    topics = [{"topic_id": topic_id, "partitions": [partition]}]

    def acquired() -> list[Container] | None:
        nonlocal session
        body = client.request_next(
            SHARE_FETCH,
            number,
            **who,
            share_session_epoch=session,
            max_wait_ms=300,
            min_bytes=1,
            max_bytes=10_000,
            max_records=10,
            batch_size=10,
            topics=topics if session == 0 else [],
        )
        assert body is not None, "no response to ShareFetch"
        session += 1
        parts = [part for topic in body.responses for part in topic.partitions]
        return [each for part in parts for each in part.acquired_records] or None

    found = patiently("records of the share group", acquired)
    return session, found


def _settle(
    client: SweepClient,
    number: int,
    who: dict[str, Any],
    topic_id: UUID,
    session: int,
    offsets: tuple[int, int],
) -> None:
    """Renew the first record if the version supports it, accept all."""
    first, last = offsets

    def batches(start: int, end: int, kind: int) -> list[dict[str, Any]]:
        batch = {"first_offset": start, "last_offset": end, "acknowledge_types": [kind]}
        partition = {"partition_index": 0, "acknowledgement_batches": [batch]}
        return [{"topic_id": topic_id, "partitions": [partition]}]

    versions = client.versions(SHARE_ACKNOWLEDGE)
    if versions[min(number, len(versions) - 1)] >= 2:
        renewed = batches(first, first, _RENEW)
        client.request_next(
            SHARE_ACKNOWLEDGE,
            number,
            **who,
            share_session_epoch=session,
            is_renew_ack=True,
            topics=renewed,
        )
        session += 1
    accepted = batches(first, last, _ACCEPT)
    client.request_next(
        SHARE_ACKNOWLEDGE, number, **who, share_session_epoch=session, topics=accepted
    )


def _state(client: SweepClient, number: int, topic_id: UUID) -> None:
    """Write, read and delete the state of a group, as coordinators and leaders do."""
    group = f"sweep.state.{number}"
    find_coordinator(client, 6, f"{group}:{_text(topic_id)}:0", _SHARE_COORDINATOR)

    def of(**fields: Any) -> dict[str, Any]:
        partition = {"partition": 0, **fields}
        return {"group_id": group, "topics": [{"topic_id": topic_id, "partitions": [partition]}]}

    client.request_next(INITIALIZE_STATE, number, **of(state_epoch=1, start_offset=0))
    batch = {"first_offset": 0, "last_offset": 1, "delivery_state": 2, "delivery_count": 1}
    written = of(
        state_epoch=1,
        leader_epoch=0,
        start_offset=0,
        delivery_complete_count=1,
        state_batches=[batch],
    )
    client.request_next(WRITE_STATE, number, **written)
    client.request_next(READ_STATE, number, **of(leader_epoch=0))
    client.request_next(READ_STATE_SUMMARY, number, **of(leader_epoch=0))
    client.request_next(DELETE_STATE, number, **of())


def _text(number: UUID) -> str:
    """Return an id in Kafka's text form: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(number.bytes)[:22].decode()
