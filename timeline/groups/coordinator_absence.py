"""
Coordinators that are away: their brokers stop, refuse connections, or load the group.

A broker that stops closes all connections. When it is back it loads its groups, and the session
timeouts of all members begin anew, so a silence before that is no timeout.

Source: Kafka, GroupMetadataManager.onLoaded (heartbeats are scheduled for each loaded member).
"""

from __future__ import annotations

from typing import NamedTuple

from timeline.events.closes import Close
from timeline.events.connect_attempts import Attempt
from timeline.events.event import Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.groups.classic_messages import OFFSET_COMMIT
from timeline.groups.classic_state import MAX_PROOFS, Absence, ClassicGroup

AWAY = {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
"""Errors of a broker that is not, or not yet, the coordinator."""

MAX_CLOSED = 100_000
"""Maximum number of retained closed connections."""

MIN_ABSENCE_NS = 10**9
"""No broker restarts faster; one that closes a connection may be reached again at once."""


def is_away(observed: ObservedExchange, error: str) -> bool:
    """
    Return whether an answer shows that a broker is not the coordinator.

    A coordinator refuses commits with COORDINATOR_NOT_AVAILABLE too, as long as it cannot replicate
    them. Source: Kafka, CoordinatorOperationExceptionHelper (NOT_ENOUGH_REPLICAS).
    """
    is_commit = observed.api_key == OFFSET_COMMIT
    return error in AWAY and not (is_commit and error == "COORDINATOR_NOT_AVAILABLE")


class Closed(NamedTuple):
    """A closed connection: when, whether by the broker, and the last exchange."""

    time_ns: int
    by_broker: bool
    evidence: Evidence


class Absences:
    """Finds the times in which coordinators are away."""

    def __init__(self) -> None:
        self._closed: States[int, Closed | None] = States(Fresh(type(None)), MAX_CLOSED)
        self._refused: States[str, Attempt | None] = States(Fresh(type(None)))

    def add_close(self, close: Close) -> None:
        """Add the end of a connection."""
        closed = Closed(close.time_ns, close.closer == "broker", close.last.evidence)
        self._closed.put(close.connection, closed)

    def add_attempt(self, attempt: Attempt) -> None:
        """Add a failed attempt to connect to a broker."""
        self._refused.put(attempt.broker, attempt)

    def is_closed(self, connection: int) -> bool:
        """Return whether a connection has ended."""
        return connection in self._closed

    def ended(self, group: ClassicGroup, observed: ObservedExchange) -> Absence | None:
        """Return the absence of a coordinator that ends by an answer to any member."""
        answers, closes = group.absence, self._by_closes(group, observed.time_ns)
        absence = answers if closes is None else closes
        if absence is None or observed.end_ns < absence.end_ns:
            return None
        if closes is not None and answers is not None:
            begin_ns = min(closes.time_ns, answers.time_ns)
            proof = (*answers.evidence, *closes.evidence)
            absence = closes._replace(time_ns=begin_ns, evidence=proof, is_proven=True)
        refused = self._refused.get(group.coordinator)
        if refused is not None and absence.time_ns <= refused.end_ns <= observed.time_ns:
            absence = absence._replace(
                evidence=(*absence.evidence, refused.evidence), is_proven=True
            )
        if not absence.is_proven and observed.time_ns - absence.time_ns < MIN_ABSENCE_NS:
            return None
        return absence._replace(
            end_ns=observed.end_ns, evidence=(*absence.evidence, observed.evidence)
        )

    def _by_closes(self, group: ClassicGroup, time_ns: int) -> Absence | None:
        """Return the absence if the broker has closed the connections of all members."""
        generation = group.newest
        if generation is None:
            return None
        left = {each.member_id for each in generation.leaves}
        found = []
        for member in generation.joins.values():
            if member.member_id in left:
                continue
            closed = self._closed.get(member.connection)
            if closed is None or not closed.by_broker or closed.time_ns >= time_ns:
                return None
            found.append(closed)
        if not found:
            return None
        since_ns = min(each.time_ns for each in found)
        known = generation.absence
        if known is not None and since_ns <= known.end_ns:
            return None  # reported, and some members are not back
        proof = tuple(each.evidence for each in found[:MAX_PROOFS])
        return Absence(since_ns, since_ns, "coordinator restarted", proof)
