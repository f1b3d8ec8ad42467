"""Mapping between captured and live broker ids."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.client.broker_metadata import Topology

_UNUSED_ID_STEP = 1000
"""Added to a captured id without a broker, repeatedly until no broker of the target has it."""


class BrokerMap:
    """
    Broker ids, mapped in both directions.

    A captured id that the target has too is mapped to itself; any other to an id not yet used by
    another, as long as there are any. An id without a broker in the capture stays without one on
    the target.
    """

    def __init__(self, target: Topology | None) -> None:
        self._target = target
        self._live: dict[int, int] = {}
        self._captured: dict[int, int] = {}
        self._captured_ids: frozenset[int] = frozenset()

    def set_captured_ids(self, nodes: Iterable[int]) -> None:
        """Set the broker ids of the capture; without any, every id may be a broker's."""
        self._captured_ids = frozenset(nodes)
        for node in sorted(self._captured_ids):
            self.live(node)

    def live(self, node: int) -> int:
        """Return the id on the target; negative ids mean no broker and stay."""
        if node < 0 or self._target is None:
            return node
        if self._captured_ids and node not in self._captured_ids:
            while node in self._target.brokers:
                node += _UNUSED_ID_STEP
            return node
        if node in self._target.brokers:
            self._captured.setdefault(node, node)
            return node
        live_node = self._live.get(node)
        if live_node is None or live_node not in self._target.brokers:
            live_node = self._live[node] = self._choose(node)
            self._captured.setdefault(live_node, node)
        return live_node

    def distinct(self, nodes: Iterable[int]) -> list[int]:
        """Return the ids of as many brokers of the target, as far as it has them, in order."""
        assert self._target is not None
        wanted = list(nodes)
        found = dict.fromkeys(
            each for each in map(self.live, wanted) if each in self._target.brokers
        )
        return [*found, *(each for each in sorted(self._target.brokers) if each not in found)][
            : len(wanted)
        ]

    def captured(self, node: int) -> int:
        """Return the captured id for an id of the target."""
        return self._captured.get(node, node)

    def _choose(self, node: int) -> int:
        assert self._target is not None
        brokers = sorted(self._target.brokers)
        free = [each for each in brokers if each not in self._captured]
        return (free or brokers or [node])[0]
