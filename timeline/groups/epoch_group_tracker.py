"""
Groups with member epochs: consumer, share and streams groups.

The coordinator computes assignments and raises the group epoch. Each member reaches the new epoch
by its own heartbeat, after revoking partitions. A rebalance is thus the transition of all members
to a new epoch. Only member epochs are on the wire, not the group epoch.

Source: KIP-848 (consumer groups), KIP-932 (share groups), KIP-1071 (streams groups).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from timeline.events.event import Event
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import States
from timeline.events.words import counted, duration, listed, member_name, partitions_text
from timeline.groups.coordinator_absence import AWAY
from timeline.groups.epoch_state import (
    JOINS,
    LEAVES,
    LEAVES_STATIC,
    EpochGroup,
    EpochMember,
    Rebalance,
    Trigger,
    assignment_of,
    subscription_of,
)
from timeline.trackers.tracker import Tracker

CONSUMER, SHARE, STREAMS = 68, 76, 88
"""Keys of ConsumerGroupHeartbeat, ShareGroupHeartbeat and StreamsGroupHeartbeat."""

FENCED = {"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"}

MAX_MEMBERS = 10_000
"""Maximum number of retained members per group."""

MAX_TRIGGERS = 100

MISSED_HEARTBEATS = 3
"""Number of missed heartbeats after which a member counts as gone."""


class EpochGroups(Tracker):
    """Follows consumer, share and streams groups at their coordinators."""

    kind: ClassVar[str] = "group"
    rests_on_absence: ClassVar[bool] = True
    apis: ClassVar[frozenset[int]] = frozenset((CONSUMER, SHARE, STREAMS))

    def __init__(self) -> None:
        self._groups: States[tuple[str, str], EpochGroup] = States(_new_group)

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process a heartbeat."""
        if observed.request is None or observed.response is None:
            return
        group = self._groups.use((observed.request.group_id, observed.broker))
        if observed.error in AWAY:
            group.away_ns = observed.end_ns
        elif observed.error:
            yield from self._refused(group, observed)
        elif observed.request.member_epoch in (LEAVES, LEAVES_STATIC):
            yield from self._leave(group, observed)
        else:
            yield from self._heartbeat(group, observed)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report rebalances interrupted by the end of the capture."""
        for group in self._groups.values():
            yield from self._report(group)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest current or possible rebalance."""
        begins = [
            *(each.rebalance.time_ns for each in self._groups.values() if each.rebalance),
            *(each.triggers[0].time_ns for each in self._groups.values() if each.triggers),
        ]
        return min(begins, default=None)

    def _heartbeat(self, group: EpochGroup, observed: ObservedExchange) -> Iterator[Event]:
        """Process an accepted heartbeat."""
        request, response = observed.request, observed.response
        member_id = response.get("member_id") or request.member_id
        member = group.members.get(member_id)
        is_new = member is None or request.member_epoch == JOINS
        if member is None:
            if len(group.members) >= MAX_MEMBERS:
                return
            member = group.members[member_id] = EpochMember(member_id)
        member.client_id = observed.client_id
        member.instance_id = request.get("instance_id") or member.instance_id
        if is_new and request.member_epoch == JOINS:
            yield from self._joined(group, member, observed)
        else:
            self._note_subscription(group, member, observed)
        before, assignments = member.epoch, group.assignments()
        member.active_ns, member.evidence = observed.time_ns, observed.evidence
        member.interval_ms = response.heartbeat_interval_ms
        member.epoch = response.member_epoch
        if group.epoch is None or response.member_epoch > group.epoch:
            yield from self._report(group)
            self._begin(group, observed, assignments)
        assigned = assignment_of(observed)
        if assigned is not None and assigned != member.assignment:
            yield self._assigned(group, member, assigned, observed)
            member.assignment = assigned
        rebalance = group.rebalance
        if rebalance is not None and member.epoch >= rebalance.epoch:
            if before != member.epoch or assigned is not None:
                rebalance.evidence.append(observed.evidence)
                rebalance.end_ns = max(rebalance.end_ns, observed.end_ns)
            rebalance.reached_ns.setdefault(member.name, observed.end_ns)
            if all(each.epoch >= rebalance.epoch for each in group.members.values()):
                yield from self._report(group)

    def _joined(
        self, group: EpochGroup, member: EpochMember, observed: ObservedExchange
    ) -> Iterator[Event]:
        member.is_captured_from_start = True
        member.subscription = subscription_of(observed)
        member.assignment = {}
        topics = f", subscribed to {member.subscription}" if member.subscription else ""
        client = f"{observed.client_id} at {observed.client_host}"
        text = f"{member.name} joined from {client}{topics}"
        self._add_trigger(group, "joined", f"{member.name} joined", observed)
        yield self.instant(observed, group.name, "joined", text)

    def _note_subscription(
        self, group: EpochGroup, member: EpochMember, observed: ObservedExchange
    ) -> None:
        subscription = subscription_of(observed)
        if subscription is None:
            return
        if member.subscription is not None and subscription != member.subscription:
            text = f"{member.name} subscribed to {subscription}, before to {member.subscription}"
            self._add_trigger(group, "subscription changed", text, observed)
        member.subscription = subscription

    def _leave(self, group: EpochGroup, observed: ObservedExchange) -> Iterator[Event]:
        request = observed.request
        member = group.members.get(request.member_id)
        if request.member_epoch == LEAVES_STATIC:
            name = member_name(request.member_id, request.get("instance_id"))
            text = f"static member {name} left; its partitions stay with it until it comes back"
            yield self.instant(observed, group.name, "left", text, cause="static member")
            return
        name = member.name if member else member_name(request.member_id)
        had = f"; it had {partitions_text(member.assignment)}" if member else ""
        yield self.instant(observed, group.name, "left", f"{name} left{had}")
        others = [each for each in group.members.values() if each is not member]
        epoch = 0 if group.rebalance is None else group.rebalance.epoch
        if all(each.epoch >= epoch for each in others):
            yield from self._report(group)
        self._add_trigger(group, "left", f"{name} left", observed)
        group.members.pop(request.member_id, None)

    def _add_trigger(
        self, group: EpochGroup, word: str, text: str, observed: ObservedExchange
    ) -> None:
        group.triggers.append(Trigger(observed.time_ns, word, text, observed.evidence))
        del group.triggers[:-MAX_TRIGGERS]

    def _begin(self, group: EpochGroup, observed: ObservedExchange, before: dict[str, str]) -> None:
        """Begin a rebalance when the first member reaches a new epoch."""
        triggers, is_order_known = _triggers_of(group)
        begin_ns = min([observed.time_ns, *(each.time_ns for each in triggers)])
        epoch = observed.response.member_epoch
        group.rebalance = Rebalance(
            epoch, group.epoch, begin_ns, observed.end_ns, before, [observed.evidence], triggers
        )
        group.rebalance.is_order_known = is_order_known
        group.epoch = epoch

    def _assigned(
        self,
        group: EpochGroup,
        member: EpochMember,
        assigned: dict[str, tuple[int, ...]],
        observed: ObservedExchange,
    ) -> Event:
        was, now = partitions_text(member.assignment), partitions_text(assigned)
        text = f"{member.name} in epoch {member.epoch}: {was} -> {now}"
        return self.instant(observed, group.name, "assigned", text)

    def _report(self, group: EpochGroup) -> Iterator[Event]:
        """Report the current rebalance."""
        rebalance = group.rebalance
        if rebalance is None:
            return
        group.rebalance = None
        word, cause, certain = _cause(group, rebalance)
        is_done = all(each.epoch >= rebalance.epoch for each in group.members.values())
        yield self.event(
            group.name,
            "rebalance",
            _text(group, rebalance, cause),
            time_ns=rebalance.time_ns,
            end_ns=rebalance.end_ns,
            proof=[*rebalance.evidence, *(each.evidence for each in rebalance.triggers)],
            brokers=[group.coordinator],
            cause=word,
            certain=certain and is_done,
            since_ns=rebalance.time_ns if group.since_ns is None else group.since_ns,
        )
        group.since_ns = rebalance.end_ns

    def _refused(self, group: EpochGroup, observed: ObservedExchange) -> Iterator[Event]:
        request = observed.request
        member = group.members.get(request.member_id)
        name = member.name if member else member_name(request.member_id, request.get("instance_id"))
        text = f"{name} in epoch {request.member_epoch}: {observed.error}"
        if observed.error not in FENCED:
            yield self.instant(
                observed, group.name, "refused", text, cause=observed.error, repeats=name
            )
            return
        if member is not None:
            silent_ns = observed.time_ns - member.active_ns
            text += f", {duration(silent_ns)} after its last accepted heartbeat"
            del group.members[request.member_id]
        yield self.instant(observed, group.name, "fenced", text, cause=observed.error)


def _triggers_of(group: EpochGroup) -> tuple[list[Trigger], bool]:
    """
    Record a possible trigger of a new epoch; return whether responses are in request order.

    The coordinator raises the epoch when it processes a request, but may answer a later one first.
    The request sent first then belongs to the previous epoch, with the trigger of the other one.
    """
    triggers, group.triggers = sorted(group.triggers, key=lambda each: each.time_ns), []
    last = group.last_trigger
    is_order_known = not triggers or last is None or last.time_ns <= triggers[0].time_ns
    if last is not None and not is_order_known:
        triggers = sorted([*triggers, last], key=lambda each: each.time_ns)[1:]
    group.last_trigger = triggers[-1] if triggers else last
    return triggers, is_order_known


def _cause(group: EpochGroup, rebalance: Rebalance) -> tuple[str, str, bool]:
    """Return the cause of a rebalance: for the event, for the text, and whether it is certain."""
    triggers = rebalance.triggers
    if rebalance.former is None and not triggers:
        return "unknown", "the capture begins after it began", False
    if triggers:
        known = all(each.is_captured_from_start for each in group.members.values())
        known &= rebalance.former is not None  # otherwise other members may precede it
        known &= rebalance.is_order_known
        text = " and ".join(dict.fromkeys(each.text for each in triggers[:3]))
        return triggers[0].word, text, known
    for member in list(group.members.values()):
        # A coordinator that loads the group begins the session timeouts anew.
        silent_ns = rebalance.time_ns - max(member.active_ns, group.away_ns)
        missed_ns = MISSED_HEARTBEATS * member.interval_ms * 1_000_000
        if member.epoch < rebalance.epoch and 0 < missed_ns < silent_ns:
            del group.members[member.member_id]
            text = f"{member.name} was silent for {duration(silent_ns)}"
            return "session timeout", text, False
    return "unknown", "no captured request explains it; topics may have changed", False


def _text(group: EpochGroup, rebalance: Rebalance, cause: str) -> str:
    """Return a rebalance for people."""
    epochs = f"epoch {rebalance.epoch}"
    if rebalance.former is not None:
        epochs = f"epoch {rebalance.former} to {rebalance.epoch}"
    took = duration(rebalance.end_ns - rebalance.time_ns)
    parts = [f"{epochs}: {cause}; {counted(len(group.members), 'member')} after {took}"]
    late = [each.name for each in group.members.values() if each.epoch < rebalance.epoch]
    if late:
        parts.append(f"not reached by {listed(sorted(late))}")
    elif len(rebalance.reached_ns) > 1:
        last = max(rebalance.reached_ns, key=lambda name: rebalance.reached_ns[name])
        parts.append(f"{last} came last")
    after = group.assignments()
    changes = []
    for name in sorted(rebalance.before.keys() | after.keys()):
        was, now = rebalance.before.get(name, "nothing"), after.get(name, "gone")
        changes.append(f"{name} {now}" if was in (now, "nothing") else f"{name} {was} -> {now}")
    if changes:
        parts.append(f"assigned: {listed(changes)}")
    return "; ".join(parts)


def _new_group(key: tuple[str, str]) -> EpochGroup:
    return EpochGroup(*key)
