"""
Adds to a transaction what the target does not add to it itself.

Clients of transactions of version 2 leave it to the broker to add the partitions that they write
to, and the group whose offsets they commit. A target that is asked in an older version wants to be
told before.

Source: KIP-890; Kafka, ProduceRequest.json (v12), TxnOffsetCommitRequest.json (v5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple

from construct import Container

from dissector.protocol.apis import KEYS, api
from dissector.protocol.error_codes import ERRORS
from replay.again import errors_of
from replay.batches import Producer, pieces
from replay.cluster import Cluster, Coordinated
from replay.link import Link
from replay.outcome import Change
from replay.roles import Role
from replay.route import MISROUTED, route
from replay.versions import negotiated

ADDED = "added"
"""The rule by which something was added to a transaction that the client left to the broker."""

_ADDS_ITSELF = {"Produce": 12, "TxnOffsetCommit": 5}
"""API -> first version with which the broker adds what is written to the transaction."""


class Addition(NamedTuple):
    """
    What is to be added.

    Attributes:
        title: The transactional id.
        api: Which API adds it.
        version: The newest one of it that is for clients.
        body: What it is asked with.
        what: Tells it from other additions.
        change: What the report tells.
    """

    title: str
    api: str
    version: int
    body: Container
    what: frozenset[Hashable]
    change: Change


async def add(
    wanted: Addition, cluster: Cluster, home: int, connect: Callable[[int], Awaitable[Link]]
) -> Container | None:
    """
    Ask for an addition, again while the target is not ready for it.

    Args:
        wanted: What is to be added.
        cluster: The target.
        home: The node to ask where nobody else is known.
        connect: Returns the connection to a node.

    Returns:
        The answer; None where it was refused: the target will tell why when it is written to.

    Raises:
        ReplayError: The target does not answer, or is not ready in time.
    """
    found = api(KEYS[wanted.api])
    assert found is not None
    version = negotiated(found, wanted.version, cluster.versions)
    if version is None:
        return None
    async for _ in cluster.attempts(f"{wanted.api} was not done"):
        ((node, body),) = await route(found.key, version, wanted.body, cluster, home)
        answer = await (await connect(node)).ask(found.key, version, body)
        assert answer is not None
        errors = set(errors_of(found.response, version, answer))
        if not errors:
            return answer
        if not any(ERRORS.get(each, ("", False))[1] for each in errors):
            break
        if errors & MISROUTED:
            cluster.forget_coordinator(Coordinated.TRANSACTION, wanted.title)
    return None


def addition(
    name: str, captured: int, version: int, body: Container, is_partial: bool = False
) -> Addition | None:
    """
    Return what a request was to add; None where that is nothing, or its version still adds it.

    Args:
        name: Of its API.
        captured: The captured version.
        version: That in which it is sent.
        body: In that version, as it is sent.
        is_partial: Whether the capture may lack the request by which the client added it.
    """
    adds_itself = _ADDS_ITSELF.get(name, 0)
    is_left = version < adds_itself and (is_partial or adds_itself <= captured)
    if not is_left or not body.transactional_id:
        return None
    return _partitions(body) if name == "Produce" else _offsets(body)


def added(api: str, body: Container) -> frozenset[Hashable]:
    """Return what a request of a client adds to its transaction, in the terms of `Addition`."""
    if api == "AddPartitionsToTxn":
        topics = body.get("v3_and_below_topics") or ()
        return frozenset((topic.name, index) for topic in topics for index in topic.partitions)
    return frozenset({body.group_id}) if api == "AddOffsetsToTxn" else frozenset()


def _partitions(body: Container) -> Addition | None:
    producer = next(filter(None, map(_producer, _written(body))), None)
    if producer is None:
        return None
    topics = [
        Container(name=topic.name, partitions=[each.index for each in topic.partition_data])
        for topic in body.topic_data
    ]
    asked = Container(
        v3_and_below_transactional_id=body.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics,
    )
    what = frozenset((topic.name, index) for topic in topics for index in topic.partitions)
    return _addition(body.transactional_id, "AddPartitionsToTxn", 3, asked, what)


def _offsets(body: Container) -> Addition:
    names = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    asked = Container({name: body[name] for name in names})
    what = frozenset({body.group_id})
    return _addition(body.transactional_id, "AddOffsetsToTxn", 4, asked, what)


def _addition(
    title: str, api: str, version: int, asked: Container, what: frozenset[Hashable]
) -> Addition:
    change = Change("transactional_id", Role.TRANSACTIONAL_ID, None, api, ADDED)
    return Addition(title, api, version, asked, what, change)


def _written(body: Container) -> list[bytes]:
    return [each.records or b"" for topic in body.topic_data for each in topic.partition_data]


def _producer(records: bytes) -> Producer | None:
    return next((piece.producer for piece in pieces(records)), None)
