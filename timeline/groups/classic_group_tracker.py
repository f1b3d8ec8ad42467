"""
Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit.

A rebalance begins with its cause, and ends when each member has its assignment. Each generation is
a separate event.

Source: https://kafka.apache.org/protocol (group membership); KIP-134, KIP-345, KIP-394, KIP-800.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from timeline.events.closes import Close
from timeline.events.connect_attempts import Attempt
from timeline.events.event import Event
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import States
from timeline.events.words import counted, duration, member_name
from timeline.groups.classic_messages import (
    assignment_of,
    error_of,
    joined_member,
    joining_member,
    leaving_members,
    sought_groups,
    static_member,
)
from timeline.groups.classic_state import (
    Absence,
    ClassicGroup,
    Generation,
    Leave,
    Member,
    Sync,
)
from timeline.groups.commit_errors import commit_errors
from timeline.groups.coordinator_absence import AWAY, Absences, is_away
from timeline.groups.rebalance_cause import find_cause, leave_word
from timeline.groups.rebalance_event import rebalance_text
from timeline.trackers.tracker import Tracker
from timeline.trackers.transaction_state import client_of

OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 8, 11, 12, 13, 14
FIND_COORDINATOR = 10

FENCED = {"FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"}
EXPECTED = {"", "MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"}

MAX_CLIENTS = 1_000
"""Maximum number of clients per group with a count of new members."""

FLAPS, FLAP_TIME_NS = 3, 300 * 10**9
"""A client flaps if it joins this often as a new member within this time."""


class ClassicGroups(Tracker):
    """Follows classic groups at their coordinators."""

    kind: ClassVar[str] = "group"
    rests_on_absence: ClassVar[bool] = True
    sees_closes: ClassVar[bool] = True
    apis: ClassVar[frozenset[int]] = frozenset(
        (OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP)
    )

    def __init__(self) -> None:
        self._groups: States[tuple[str, str], ClassicGroup] = States(_new_group)
        self._absences = Absences()

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange between a member and its coordinator."""
        if observed.request is None or observed.response is None:
            return
        if observed.api_key == FIND_COORDINATOR:
            yield from self._sought(observed)
            return
        group = self._groups.use((observed.request.group_id, observed.broker))
        error, is_commit = error_of(observed), observed.api_key == OFFSET_COMMIT
        for each in commit_errors(observed) if is_commit else ():
            yield from self._refused(group, observed, each)
        if is_away(observed, error):
            yield from self._moved_away(group, observed, error)
            return
        if group.newest is None:
            yield from self._moved_here(group, observed)
        else:
            yield from self._returned(group, observed)
        if error not in EXPECTED:
            if not is_commit:
                yield from self._refused(group, observed, error)
            return
        match observed.api_key:
            case 11:
                yield from self._join(group, observed, error)
            case 14:
                yield from self._sync(group, observed, error)
            case 13:
                yield from self._leave(group, observed)
            case _:
                self._touch(group, observed, error)

    def observe_close(self, close: Close) -> Iterator[Event]:
        """Record the end of a connection, which the broker may have closed to stop."""
        self._absences.add_close(close)
        yield from ()

    def observe_attempt(self, attempt: Attempt) -> Iterator[Event]:
        """Record that a broker may be down."""
        self._absences.add_attempt(attempt)
        yield from ()

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report rebalances that are incomplete at the end of the capture."""
        for group in self._groups.values():
            pending = group.pending
            yield from self._report(group, is_cut=pending is not None and self._awaits(pending))

    def _awaits(self, generation: Generation) -> bool:
        """Return whether members may still get an assignment."""
        left = {each.member_id for each in generation.leaves}
        missing = generation.members - generation.syncs.keys() - left
        joins = [generation.joins.get(each) for each in missing]
        return any(
            join is None or not self._absences.is_closed(join.evidence.connection) for join in joins
        )

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest current or possible rebalance."""
        begins = [group.since_ns for group in self._groups.values()]
        return min((each for each in begins if each is not None), default=None)

    def _join(self, group: ClassicGroup, observed: ObservedExchange, error: str) -> Iterator[Event]:
        """Process a JoinGroup; the first one of a generation begins a rebalance."""
        if error:
            return
        join, body = joined_member(observed), observed.response
        newest = group.newest
        if newest is not None and newest.number == body.generation_id and newest.is_stable:
            yield from self._rejoined(group, newest, join, observed)
            return
        if newest is not None and newest.number > body.generation_id:
            yield from self._report(group)
            group.current = newest = None  # the group was deleted and recreated
        if newest is None or newest.number != body.generation_id:
            yield from self._report(group)
            group.pending = Generation(body.generation_id)
        elif group.pending is None:
            group.current, group.pending = None, newest  # the capture begins during the generation
        pending = group.pending
        assert pending is not None
        pending.joins[join.member_id] = join
        pending.protocol, pending.leader = body.protocol_name or "", body.leader
        pending.protocol_type = body.get("protocol_type") or observed.request.protocol_type
        if body.leader == body.member_id and body.members:
            pending.member_ids = tuple(each.member_id for each in body.members)
        current = group.current
        if current is None or join.member_id not in current.members:
            yield from self._joined(group, join, observed)

    def _rejoined(
        self, group: ClassicGroup, generation: Generation, join: Member, observed: ObservedExchange
    ) -> Iterator[Event]:
        """Process a JoinGroup answered without a rebalance."""
        twin = static_member(generation, join.instance_id)
        generation.joins[join.member_id] = join
        if twin is not None and twin.member_id != join.member_id:
            generation.replace(twin.member_id, join.member_id)
            text = (
                f"static member {join.instance_id} came back as {member_name(join.member_id)}, "
                f"in generation {generation.number}, without a rebalance"
            )
            yield self.instant(observed, group.name, "static member returned", text)

    def _joined(
        self, group: ClassicGroup, join: Member, observed: ObservedExchange
    ) -> Iterator[Event]:
        """Report new members, and clients that join too often."""
        client = f"{observed.client_id} at {observed.client_host}"
        static = f" (static member {join.instance_id})" if join.instance_id else ""
        reason = f": {join.reason}" if join.reason else ""
        text = f"{member_name(join.member_id)}{static} joined from {client}{reason}"
        certain = group.current is not None or (group.pending or Generation(0)).number == 1
        yield self.instant(observed, group.name, "joined", text, certain=certain)
        times = group.joined_ns.setdefault(client, [])
        times.append(observed.time_ns)
        del times[:-FLAPS]
        if len(group.joined_ns) > MAX_CLIENTS:
            del group.joined_ns[next(iter(group.joined_ns))]
        if len(times) == FLAPS and times[-1] - times[0] <= FLAP_TIME_NS:
            text = f"{client} joined {FLAPS} times in {duration(times[-1] - times[0])}"
            yield self.instant(
                observed, group.name, "flapping", text, cause="joined", certain=False
            )
            times.clear()

    def _sync(self, group: ClassicGroup, observed: ObservedExchange, error: str) -> Iterator[Event]:
        """Process a SyncGroup; the last one of a generation ends the rebalance."""
        request = observed.request
        self._touch(group, observed, error)
        generation = group.generation(request.generation_id)
        if error or generation is None:
            return
        protocol_type = generation.protocol_type or None
        for each in request.assignments or ():
            generation.assignments[each.member_id] = assignment_of(each.assignment, protocol_type)
        generation.assignments[request.member_id] = assignment_of(
            observed.response.assignment, protocol_type
        )
        generation.syncs[request.member_id] = Sync(
            observed.time_ns, observed.end_ns, observed.evidence
        )
        if generation is group.pending and generation.is_stable:
            yield from self._report(group)

    def _report(self, group: ClassicGroup, *, is_cut: bool = False) -> Iterator[Event]:
        """
        Report the pending generation, and make it current.

        Args:
            group: The group.
            is_cut: Whether the capture ends during the rebalance; otherwise it is stable,
                superseded, or members without an assignment are gone.
        """
        before, generation = group.current, group.pending
        if generation is None:
            return
        cause = find_cause(before, generation)
        yield self.event(
            group.name,
            "rebalance",
            rebalance_text(before, generation, cause),
            time_ns=cause.time_ns,
            end_ns=generation.end_ns,
            proof=[*cause.evidence, *generation.evidence],
            brokers=[group.coordinator],
            cause=cause.word,
            certain=cause.certain and not is_cut,
            since_ns=cause.time_ns if before is None else before.joined_ns,
        )
        group.current, group.pending = generation, None

    def _leave(self, group: ClassicGroup, observed: ObservedExchange) -> Iterator[Event]:
        """Process a LeaveGroup of one member, or (v3+) of several."""
        newest = group.newest
        for member_id, instance_id, reason in leaving_members(observed):
            known = None
            if newest is not None:
                known = newest.joins.get(member_id) or static_member(newest, instance_id)
            name = known.name if known else member_name(member_id, instance_id)
            left_id = known.member_id if known else member_id
            if newest is not None:
                newest.leaves.append(
                    Leave(left_id, name, observed.time_ns, reason, observed.evidence)
                )
            rest = newest.members - {each.member_id for each in newest.leaves} if newest else set()
            what = "the group is empty" if not rest else f"{counted(len(rest), 'member')} left over"
            known_rest = f"; {what}" if newest is not None and newest.is_complete else ""
            words = f" ({reason})" if reason else ""
            yield self.instant(
                observed,
                group.name,
                "left",
                f"{name} left{words}{known_rest}",
                cause="" if leave_word(reason) == "left" else leave_word(reason),
            )

    def _touch(self, group: ClassicGroup, observed: ObservedExchange, error: str) -> None:
        """Record activity of a member, and a rejoin request from the coordinator."""
        request = observed.request
        number = request.get("generation_id", request.get("generation_id_or_member_epoch"))
        if number is None or number < 0 or not request.get("member_id"):
            return  # a simple consumer
        if group.newest is None:
            group.current = Generation(number)
        generation = group.generation(number)
        if generation is None:
            return
        member = generation.joins.get(request.member_id)
        if member is None:
            if generation.is_complete:
                return
            member = joining_member(observed)
            generation.joins[member.member_id] = member
        member.active_ns, member.active_evidence = observed.time_ns, observed.evidence
        if error == "REBALANCE_IN_PROGRESS" and member.signal_ns is None:
            member.signal_ns, member.signal_evidence = observed.end_ns, observed.evidence

    def _refused(
        self, group: ClassicGroup, observed: ObservedExchange, error: str
    ) -> Iterator[Event]:
        """Report a request refused by the coordinator."""
        request = observed.request
        number = request.get("generation_id", request.get("generation_id_or_member_epoch"))
        newest = group.newest
        name = _requester(newest, observed, number)
        what = f"{observed.api} of {name}"
        if number is not None and number >= 0:
            what += f" in generation {number}"
            if newest is not None and newest.number != number:
                what += f", while the group is in {newest.number}"
        event = "commit refused" if observed.api_key == OFFSET_COMMIT else "refused"
        if error in FENCED and event != "commit refused":
            event = "fenced"
        text = f"{what}: {error}"
        if observed.api_key == OFFSET_COMMIT and error in FENCED:
            text += "; its offsets were not committed, so records may be read again"
        yield self.instant(observed, group.name, event, text, cause=error, repeats=name)

    def _sought(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process a FindCoordinator, which shows whether the coordinator of a group is there."""
        for name, error in sought_groups(observed):
            for group in [each for each in self._groups.values() if each.name == name]:
                if error in AWAY and group.newest is not None:
                    group.add_absence(observed.end_ns, observed.evidence)
                elif not error and group.coordinator == observed.broker:
                    yield from self._returned(group, observed)

    def _moved_away(
        self, group: ClassicGroup, observed: ObservedExchange, error: str
    ) -> Iterator[Event]:
        """Record that a broker is not the coordinator of a group, or not yet."""
        if group.newest is None:
            if error == "COORDINATOR_LOAD_IN_PROGRESS":
                yield from self._refused(group, observed, error)
            return
        is_first = group.absence is None
        group.add_absence(observed.end_ns, observed.evidence)
        if is_first and error == "NOT_COORDINATOR":
            text = f"{observed.broker} is no longer its coordinator"
            yield self.instant(observed, group.name, "coordinator lost", text, cause=error)

    def _returned(self, group: ClassicGroup, observed: ObservedExchange) -> Iterator[Event]:
        """Report a coordinator that answers again after it was away."""
        generation = group.newest
        absence = self._absences.ended(group, observed)
        if absence is None or generation is None:
            return
        group.absence, generation.absence = None, absence
        how = "closed the connections of its members"
        if absence.word == "coordinator away":
            how = "was not its coordinator, or had not loaded it"
        text = f"{group.coordinator} {how}, and answered after {duration(absence.duration_ns)}"
        yield self._absent(group, absence, text)

    def _moved_here(self, group: ClassicGroup, observed: ObservedExchange) -> Iterator[Event]:
        """Transfer the state of a group from its former coordinator."""
        for former in list(self._groups.values()):
            if former.name != group.name or former is group:
                continue
            absence = self._absences.ended(former, observed)
            if absence is None:
                continue
            absence = absence._replace(word="coordinator moved")
            del self._groups[former.name, former.coordinator]
            group.current, group.pending = former.current, former.pending
            if group.newest is not None:
                group.newest.absence = absence
            text = (
                f"from {former.coordinator} to {group.coordinator}, "
                f"{duration(absence.duration_ns)} without a coordinator"
            )
            yield self._absent(group, absence, text, former.coordinator)
            return

    def _absent(
        self, group: ClassicGroup, absence: Absence, text: str, former: str | None = None
    ) -> Event:
        return self.event(
            group.name,
            absence.word,
            text,
            time_ns=absence.time_ns,
            end_ns=absence.end_ns,
            proof=absence.evidence,
            brokers=[group.coordinator, former or group.coordinator],
            certain=False,
        )


def _requester(newest: Generation | None, observed: ObservedExchange, number: int | None) -> str:
    """
    Return the name of the member that sent a request.

    librdkafka clears its member id when it leaves or is fenced, and still commits in the generation
    of that member.
    """
    request = observed.request
    member_id, instance_id = request.get("member_id") or "", request.get("group_instance_id")
    if member_id or instance_id or number is None or number < 0:
        return member_name(member_id, instance_id)
    known = () if newest is None else newest.joins.values()
    own = [each.name for each in known if each.client == client_of(observed)]
    return f"{own[0]}, without its id," if len(own) == 1 else "a former member, without its id,"


def _new_group(key: tuple[str, str]) -> ClassicGroup:
    return ClassicGroup(*key)
