"""
Splits a capture into parts by connection, for several processes that play it together.

Connections of one producer, one transactional id, or the members of one group stay together: their
ids, sequences and generations are known only to the process that receives them. Connections that
depend on each other otherwise, as a reader does on the writers of its records, stay together as far
as the parts remain of about the same size.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import unique
from dissector.protocol.field_roles import Role
from replay.order.dependencies import Dependencies, same_resources
from replay.order.read_write_sets import CLUSTER, Resource

_Numbers = NDArray[np.int64]

_UNITING_WRITES = frozenset({Role.GROUP.value, Role.TRANSACTIONAL_ID.value})
"""Kinds of resources that keep their writers together; readers may be elsewhere."""

_UNITING = frozenset({"producer"})
"""Kinds of resources that keep their readers and writers together."""

_TOLERANCE = 1.1
"""By this factor a part may be larger than its share, to keep connections together."""


class Accesses:
    """
    The resources that the exchanges of a capture access, as columns.

    Args:
        dependencies: What each exchange reads and writes.
        connections: The connection of each exchange.
        is_sent: Whether each exchange is sent.
        name: Returns the name of a topic id.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        connections: _Numbers,
        is_sent: NDArray[np.bool_],
        name: Callable[[UUID], str | None],
    ) -> None:
        same = same_resources(dependencies.resources, name)
        self._resources = list(dependencies.resources)
        numbers = np.arange(len(self._resources), dtype=np.int64)
        numbers[list(same)] = list(same.values())
        counts, accesses = dependencies.access_columns()
        exchanges = np.repeat(np.arange(len(counts)), counts)
        kept = is_sent[exchanges]
        accesses = accesses[kept]
        self._connections = connections[exchanges[kept]]
        self._numbers = numbers[accesses >> 1]
        self._is_write = (accesses & 1).astype(bool)

    def united(self) -> list[list[int]]:
        """Return for each resource that unites them its connections."""
        kinds = [resource[0] for resource in self._resources]
        always = np.array([kind in _UNITING for kind in kinds], bool)
        by_write = np.array([kind in _UNITING_WRITES for kind in kinds], bool)
        unites = always[self._numbers] | (by_write[self._numbers] & self._is_write)
        pairs = np.unique(
            np.stack([self._numbers[unites], self._connections[unites]], axis=1), axis=0
        )
        found: defaultdict[int, list[int]] = defaultdict(list)
        for resource, connection in pairs.tolist():
            found[resource].append(connection)
        return list(found.values())

    def written_by(self, connections: _Numbers) -> frozenset[Resource]:
        """Return the resources that these connections change."""
        is_wanted = self._is_write & np.isin(self._connections, connections)
        found = (self._resources[each] for each in unique(self._numbers[is_wanted]).tolist())
        return frozenset(found) - {CLUSTER}


def dependent_connections(
    connections: _Numbers, causes: array[int], cause_ends: array[int]
) -> Counter[tuple[int, int]]:
    """
    Return pairs of connections, with the number of steps of the first that wait for the second.

    Args:
        connections: The connection of each step.
        causes: The dependencies of all steps, concatenated.
        cause_ends: For each step the end of its dependencies; begins with 0.
    """
    ends = np.frombuffer(cause_ends, np.int64)
    waiting = np.repeat(connections, ends[1:] - ends[:-1])
    pairs = np.stack([waiting, connections[np.frombuffer(causes, np.int32)]], axis=1)
    found, times = np.unique(pairs, axis=0, return_counts=True)
    return Counter(
        {
            (one, other): number
            for (one, other), number in zip(found.tolist(), times.tolist(), strict=True)
            if one != other
        }
    )


def split_connections(
    sizes: Mapping[int, int],
    united: list[list[int]],
    dependent: Counter[tuple[int, int]],
    count: int,
) -> dict[int, int]:
    """
    Return the part of each connection, from 0; the same in each process.

    Args:
        sizes: Connection -> the number of its requests.
        united: Connections that must stay together.
        dependent: Pairs of connections -> the number of dependencies of the first on the second.
        count: The number of parts.
    """
    cluster_of = _clusters(sizes, united)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for connection, cluster in cluster_of.items():
        members[cluster].append(connection)
    weights = {cluster: sum(map(sizes.__getitem__, each)) for cluster, each in members.items()}
    near: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for (one, other), times in dependent.items():
        pair = cluster_of[one], cluster_of[other]
        for cluster, neighbour in (pair, pair[::-1]) if pair[0] != pair[1] else ():
            near[cluster][neighbour] += times
    share = sum(weights.values()) / count * _TOLERANCE
    loads = [0] * count
    part_of: dict[int, int] = {}
    for cluster in sorted(members, key=lambda each: (-weights[each], each)):
        pull: Counter[int] = Counter()
        for neighbour, times in near[cluster].items():
            if neighbour in part_of:
                pull[part_of[neighbour]] += times
        fitting = [part for part in range(count) if loads[part] + weights[cluster] <= share]
        part = min(fitting or range(count), key=lambda each: (-pull[each], loads[each], each))
        if not fitting:
            part = min(range(count), key=lambda each: (loads[each], each))
        part_of[cluster] = part
        loads[part] += weights[cluster]
    return {connection: part_of[cluster] for connection, cluster in cluster_of.items()}


def _clusters(sizes: Mapping[int, int], united: list[list[int]]) -> dict[int, int]:
    """Return for each connection the lowest of those that must stay with it."""
    parents = {connection: connection for connection in sizes}

    def root(connection: int) -> int:
        while parents[connection] != connection:
            parents[connection] = parents[parents[connection]]
            connection = parents[connection]
        return connection

    for first, *others in united:
        for other in others:
            low, high = sorted((root(first), root(other)))
            parents[high] = low
    return {connection: root(connection) for connection in sizes}
