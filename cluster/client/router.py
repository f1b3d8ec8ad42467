"""
Routing: splits a request by the brokers of the target that handle it.

Source: the brokers that clients choose: Kafka's AdminApiHandlers and KafkaAdminClient
(`nodeProvider`), Sender, AbstractFetch, TransactionManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from construct import Container

from cluster.client.cluster import Cluster, CoordinatorType
from cluster.fields.field_layout import StructField, StructLayout, ValueField
from cluster.fields.roles import layout_of
from dissector.protocol.apis import NAMES, api
from dissector.protocol.error_codes import error_code
from dissector.protocol.field_roles import Role


class Destination(StrEnum):
    """
    The broker that handles an API.

    `leader`: the leader of each partition. `group`, `transaction`: the coordinator. `controller`:
    the
    controller. `resource`: the broker that a configuration belongs to. `home`: the counterpart of
    the
    broker that the captured connection went to.
    """

    LEADER = "leader"
    GROUP = "group"
    TRANSACTION = "transaction"
    CONTROLLER = "controller"
    RESOURCE = "resource"
    HOME = "home"


DESTINATIONS = {
    Destination.LEADER: (
        "Produce Fetch ListOffsets DeleteRecords OffsetForLeaderEpoch DescribeProducers ShareFetch "
        "ShareAcknowledge"
    ),
    Destination.GROUP: (
        "OffsetCommit OffsetFetch JoinGroup Heartbeat LeaveGroup SyncGroup DescribeGroups "
        "DeleteGroups OffsetDelete TxnOffsetCommit ConsumerGroupHeartbeat ConsumerGroupDescribe "
        "ShareGroupHeartbeat ShareGroupDescribe StreamsGroupHeartbeat StreamsGroupDescribe "
        "StreamsGroupTopologyDescriptionUpdate "
        "DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets"
    ),
    Destination.TRANSACTION: (
        "InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn DescribeTransactions"
    ),
    Destination.CONTROLLER: (
        "CreateTopics DeleteTopics CreatePartitions ElectLeaders AlterPartitionReassignments "
        "ListPartitionReassignments AlterUserScramCredentials UpdateFeatures"
    ),
    Destination.RESOURCE: "DescribeConfigs AlterConfigs IncrementalAlterConfigs",
}
"""Destination -> APIs; all others have the destination `home`."""

_DESTINATION_OF = {
    name: destination for destination, names in DESTINATIONS.items() for name in names.split()
}

_COORDINATORS = {
    Destination.GROUP: (Role.GROUP, CoordinatorType.GROUP),
    Destination.TRANSACTION: (Role.TRANSACTIONAL_ID, CoordinatorType.TRANSACTION),
}

_BROKER_RESOURCES = (4, 8)
"""Types of resources that belong to one broker: its configuration, and its loggers (KIP-412)."""

MISROUTED = frozenset(
    code
    for name in (
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_COORDINATOR",
        "NOT_CONTROLLER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    )
    if (code := error_code(name)) is not None
)
"""Errors that show that our metadata of the target is outdated."""


def destination_of(api_key: int) -> Destination:
    """Return the destination of an API."""
    return _DESTINATION_OF.get(NAMES.get(api_key, ""), Destination.HOME)


async def route(
    api_key: int, version: int, body: Container, cluster: Cluster, home: int
) -> list[tuple[int, Container]]:
    """
    Split a request by the brokers that handle it.

    Args:
        api_key: The API key.
        version: The API version.
        body: The body, in names and ids of the target.
        cluster: The target.
        home: The node for the captured broker. It gets requests that any broker can answer, and
            requests without a matching broker, so that the target returns the error.

    Returns:
        Node and body of each part, in the order of first use; the original body if one broker gets
        all of it. Never empty.

    Raises:
        ReplayError: The target finds no coordinator.
    """
    home = home if home in cluster.brokers else cluster.any_node
    destination = destination_of(api_key)
    if destination is Destination.LEADER:
        topic_layouts = _topic_layouts(api_key, version)
        return _grouped_by_node(body, home, _split_by_leader(topic_layouts, body, cluster, home))
    if destination is Destination.RESOURCE:
        return _grouped_by_node(body, home, _split_by_resource(body, cluster, home))
    if destination is Destination.CONTROLLER:
        return [(cluster.controller if cluster.controller in cluster.brokers else home, body)]
    if destination is Destination.HOME:
        return [(home, body)]
    role, kind = _COORDINATORS[destination]
    key_layout = _key_layout(api_key, version, role)
    nodes: dict[str | None, int] = {}
    for key in dict.fromkeys(key for key, _ in _keys_in(key_layout, body)):
        coordinator = None if key is None else await cluster.coordinator(kind, key)
        nodes[key] = home if coordinator is None else coordinator
    if not key_layout.array:
        return [(nodes[body[key_layout.field]], body)]
    return _grouped_by_node(
        body,
        home,
        ((nodes[key], key_layout.array, element) for key, element in _keys_in(key_layout, body)),
    )


_Share = tuple[int, str, Any]
"""A node, the name of an array in the body, and an element of that array for the node."""


def _grouped_by_node(
    body: Container, home: int, shares: Iterable[_Share]
) -> list[tuple[int, Container]]:
    """Return a body for each node, with the elements for it."""
    by_node: dict[int, dict[str, list[Any]]] = {}
    for node, array, element in shares:
        by_node.setdefault(node, {}).setdefault(array, []).append(element)
    if len(by_node) <= 1:
        return [(next(iter(by_node), home), body)]
    arrays = {array for parts in by_node.values() for array in parts}
    return [
        (node, Container(body, **{array: parts.get(array, []) for array in arrays}))
        for node, parts in by_node.items()
    ]


class _TopicLayout(NamedTuple):
    """
    The layout of an array of topics in a request.

    Attributes:
        array: The name of the array.
        name: The field with the topic name in an element; empty if the version lacks it.
        topic_id: The field with the topic id in an element; empty if the version lacks it.
        partitions: The field with the partitions in an element.
        partition: The field with the number in an element of the partitions; empty if these are
            numbers.
    """

    array: str
    name: str
    topic_id: str
    partitions: str
    partition: str


@cache
def _topic_layouts(api_key: int, version: int) -> tuple[_TopicLayout, ...]:
    return tuple(
        _TopicLayout(
            topics.name, scope.get("topic", ""), scope.get("topic_id", ""), inner.name, number
        )
        for topics in _layout(api_key, version).members
        if isinstance(topics, StructField) and topics.is_list
        for scope in [dict(topics.layout.scope)]
        for inner in topics.layout.members
        if (number := _partition_field(inner)) is not None
    )


def _partition_field(member: ValueField | StructField) -> str | None:
    """Return the field with the partition in an array's elements; None without any."""
    if not member.is_list:
        return None
    if isinstance(member, ValueField):
        return "" if member.role is Role.PARTITION else None
    return dict(member.layout.scope).get("partition")


def _split_by_leader(
    layout: tuple[_TopicLayout, ...], body: Container, cluster: Cluster, home: int
) -> Iterator[_Share]:
    for topics in layout:
        for topic in body[topics.array] or ():
            name = topic[topics.name] if topics.name else cluster.topic_name(topic[topics.topic_id])
            by_node: dict[int, list[Any]] = {}
            for each in topic[topics.partitions] or ():
                number = each[topics.partition] if topics.partition else each
                leader = cluster.leader(name, number) if name else None
                by_node.setdefault(home if leader is None else leader.node, []).append(each)
            if len(by_node) == 1:
                yield next(iter(by_node)), topics.array, topic
                continue
            for node, partitions in (by_node or {home: []}).items():
                yield node, topics.array, Container(topic, **{topics.partitions: partitions})


class _KeyLayout(NamedTuple):
    """
    Where a request has its groups or transactional ids.

    Attributes:
        array: The array of them; empty if there is only one.
        field: The field in the body or in an element; empty if the elements are scalars.
    """

    array: str
    field: str


@cache
def _key_layout(api_key: int, version: int, role: Role) -> _KeyLayout:
    for member in _layout(api_key, version).members:
        if isinstance(member, ValueField):
            if member.role is role:
                return (
                    _KeyLayout(member.name, "") if member.is_list else _KeyLayout("", member.name)
                )
        elif member.is_list and role.value in dict(member.layout.scope):
            return _KeyLayout(member.name, dict(member.layout.scope)[role.value])
    raise AssertionError(f"{NAMES[api_key]} v{version} has no {role}")


def _keys_in(name: _KeyLayout, body: Container) -> Iterator[tuple[str | None, Any]]:
    """Yield each group or transactional id, and the element that contains it."""
    for element in (body[name.array] or ()) if name.array else (body,):
        yield (element[name.field] if name.field else element), element


def _split_by_resource(body: Container, cluster: Cluster, home: int) -> Iterator[_Share]:
    for each in body.resources:
        name = each.resource_name
        owned = each.resource_type in _BROKER_RESOURCES and name.isdecimal()
        node = int(name) if owned else home
        yield (node if node in cluster.brokers else home), "resources", each


def _layout(api_key: int, version: int) -> StructLayout:
    known_api = api(api_key)
    assert known_api is not None
    return layout_of(known_api.request, version)
