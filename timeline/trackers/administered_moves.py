"""
Leaders and replicas that an administrator moves: reassignments and elections.

Source: KIP-455 (reassignment), KIP-460 (elections).
"""

from __future__ import annotations

from typing import NamedTuple

from timeline.events.event import Evidence
from timeline.events.observed_exchange import Mark
from timeline.events.states import Fresh, States

MAX_PARTITIONS = 100_000


class Move(NamedTuple):
    """
    An accepted request to move a partition.

    Attributes:
        word: `reassignment` or `election`.
        mark: The request.
        replicas: The replicas after a reassignment; empty for an election.
    """

    word: str
    mark: Mark
    replicas: frozenset[int] = frozenset()

    @property
    def evidence(self) -> Evidence:
        """The request."""
        return self.mark.evidence


class AdministeredMoves:
    """The last request for each partition, until the cluster has followed it."""

    def __init__(self) -> None:
        self._moves: States[tuple[str, int], Move | None] = States(
            Fresh(type(None)), MAX_PARTITIONS
        )

    def add(self, topic: str, partition: int, move: Move) -> None:
        """Add a request."""
        self._moves.put((topic, partition), move)

    def cancel(self, topic: str, partition: int) -> None:
        """Forget a request that was cancelled."""
        self._moves.pop((topic, partition), None)

    def of_leader(self, topic: str, partition: int, leader: int, end_ns: int) -> Move | None:
        """Return the request that made a broker the leader, known at a time."""
        move = self._known(topic, partition, end_ns)
        if move is None:
            return None
        if move.replicas and leader not in move.replicas:
            return None
        if not move.replicas:
            self.cancel(topic, partition)  # an election has one result
        return move

    def of_isr(
        self, topic: str, partition: int, before: frozenset[int], after: frozenset[int], end_ns: int
    ) -> Move | None:
        """Return the reassignment that changed the replicas in sync, known at a time."""
        move = self._known(topic, partition, end_ns)
        if move is None or not move.replicas:
            return None
        follows = after - before <= move.replicas and not (before - after) & move.replicas
        return move if follows else None

    def _known(self, topic: str, partition: int, end_ns: int) -> Move | None:
        move = self._moves.get((topic, partition))
        return move if move is not None and move.mark.time_ns <= end_ns else None
