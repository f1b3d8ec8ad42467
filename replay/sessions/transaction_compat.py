"""
AddPartitions shim: adds partitions and groups to transactions for targets that do not.

With transactions of version 2, the broker adds the written partitions, and the group of committed
offsets. In older request versions, the client must send AddPartitionsToTxn or AddOffsetsToTxn
first.

Source: KIP-890; Kafka, ProduceRequest.json (v12), TxnOffsetCommitRequest.json (v5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple

from construct import Container

from cluster.client.broker_connection import BrokerConnection
from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.router import MISROUTED, route
from cluster.conversion.change import Change
from cluster.conversion.version_converter import choose_version
from cluster.fields.batch_rewriter import Producer, batch_headers
from dissector.protocol.apis import KEYS, api
from dissector.protocol.error_codes import ERRORS
from dissector.protocol.field_roles import Role
from replay.sessions.retry_policy import errors_of

ADDED = "added"
"""The rule of changes for partitions and groups added in place of the broker."""

_ADDS_ITSELF = {"Produce": 12, "TxnOffsetCommit": 5}
"""API -> first version with addition of partitions or groups by the broker."""


class Addition(NamedTuple):
    """
    A request that adds partitions or a group to a transaction.

    Attributes:
        transactional_id: The transactional id.
        api: The API of the request: AddPartitionsToTxn or AddOffsetsToTxn.
        version: The newest version of the API that is for clients.
        body: The request body.
        elements: The partitions or the group, as a key to distinguish additions.
        change: The change for the report.
    """

    transactional_id: str
    api: str
    version: int
    body: Container
    elements: frozenset[Hashable]
    change: Change


async def send_addition(
    wanted: Addition,
    cluster: Cluster,
    default_node: int,
    connect: Callable[[int], Awaitable[BrokerConnection]],
) -> Container | None:
    """
    Send an addition, with retries while the target reports retriable errors.

    Args:
        wanted: The addition.
        cluster: The target.
        default_node: The node to send to if the request has no specific destination.
        connect: Returns the connection to a node.

    Returns:
        The response; None if the target refused: the write itself then returns the error.

    Raises:
        ReplayError: The target does not respond, or is not ready in time.
    """
    found = api(KEYS[wanted.api])
    assert found is not None
    version = choose_version(found, wanted.version, cluster.versions)
    if version is None:
        return None
    async for _ in cluster.attempts(f"{wanted.api} was not done"):
        ((node, body),) = await route(found.key, version, wanted.body, cluster, default_node)
        response = await (await connect(node)).request(found.key, version, body)
        assert response is not None
        errors = set(errors_of(found.response, version, response))
        if not errors:
            return response
        if not any(ERRORS.get(each, ("", False))[1] for each in errors):
            break
        if errors & MISROUTED:
            cluster.forget_coordinator(CoordinatorType.TRANSACTION, wanted.transactional_id)
    return None


def addition_for(
    name: str, captured: int, version: int, body: Container, is_partial: bool = False
) -> Addition | None:
    """
    Return the addition that a request needs; None if it needs none or its version does it.

    Args:
        name: The name of the API.
        captured: The captured version.
        version: The version of the sent request.
        body: The sent body in that version.
        is_partial: Whether the capture may lack the AddPartitionsToTxn or AddOffsetsToTxn of the
            client.
    """
    adds_itself = _ADDS_ITSELF.get(name, 0)
    is_left = version < adds_itself and (is_partial or adds_itself <= captured)
    if not is_left or not body.get("transactional_id"):  # Produce has it from v3 on
        return None
    return _partitions(body) if name == "Produce" else _offsets(body)


def added_elements(api: str, body: Container) -> frozenset[Hashable]:
    """Return the additions of a client's request to its transaction, as in `Addition.what`."""
    if api == "AddPartitionsToTxn":
        topics = body.get("v3_and_below_topics") or ()
        return frozenset((topic.name, index) for topic in topics for index in topic.partitions)
    return frozenset({body.group_id}) if api == "AddOffsetsToTxn" else frozenset()


def _partitions(body: Container) -> Addition | None:
    producer = next(filter(None, map(_producer, _records_fields(body))), None)
    if producer is None:
        return None
    topics = [
        Container(name=topic.name, partitions=[each.index for each in topic.partition_data])
        for topic in body.topic_data
    ]
    request = Container(
        v3_and_below_transactional_id=body.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics,
    )
    what = frozenset((topic.name, index) for topic in topics for index in topic.partitions)
    return _addition(body.transactional_id, "AddPartitionsToTxn", 3, request, what)


def _offsets(body: Container) -> Addition:
    names = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    request = Container({name: body[name] for name in names})
    what = frozenset({body.group_id})
    return _addition(body.transactional_id, "AddOffsetsToTxn", 4, request, what)


def _addition(
    transactional_id: str, api: str, version: int, request: Container, elements: frozenset[Hashable]
) -> Addition:
    change = Change("transactional_id", Role.TRANSACTIONAL_ID, None, api, ADDED)
    return Addition(transactional_id, api, version, request, elements, change)


def _records_fields(body: Container) -> list[bytes]:
    return [each.records or b"" for topic in body.topic_data for each in topic.partition_data]


def _producer(records: bytes) -> Producer | None:
    return next((batch.producer for batch in batch_headers(records)), None)
