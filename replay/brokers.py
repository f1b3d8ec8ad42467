"""Which broker of the target stands for which of the capture."""

from __future__ import annotations

from collections.abc import Iterable

from replay.topology import Topology

_NOBODY = 1000
"""Added to an id that is nobody's in the capture, as often as somebody of the target has it."""


class Brokers:
    """
    Ids of brokers, in both directions.

    A captured id that the target has too stands for itself; each other gets one that no other
    stands for yet, while there are any. One that is nobody's in the capture is nobody's on the
    target.
    """

    def __init__(self, target: Topology | None) -> None:
        self._target = target
        self._live: dict[int, int] = {}
        self._captured: dict[int, int] = {}
        self._known: frozenset[int] = frozenset()

    def know(self, nodes: Iterable[int]) -> None:
        """Take over who there is in the capture; where nobody is known, anybody may be."""
        self._known = frozenset(nodes)

    def live(self, node: int) -> int:
        """Return the id on the target; negative ones are nobody's."""
        if node < 0 or self._target is None:
            return node
        if self._known and node not in self._known:
            while node in self._target.brokers:
                node += _NOBODY
            return node
        if node in self._target.brokers:
            self._captured.setdefault(node, node)
            return node
        found = self._live.get(node)
        if found is None or found not in self._target.brokers:
            found = self._live[node] = self._choose(node)
            self._captured.setdefault(found, node)
        return found

    def captured(self, node: int) -> int:
        """Return the captured id that one of the target stands for."""
        return self._captured.get(node, node)

    def _choose(self, node: int) -> int:
        assert self._target is not None
        known = sorted(self._target.brokers)
        free = [each for each in known if each not in self._captured]
        return (free or known or [node])[0]
