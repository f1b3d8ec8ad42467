"""The state of a group with member epochs: consumer, share and streams groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timeline.events.event import Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.words import member_name, partitions_text

_ID_LENGTH = 6

JOINS, LEAVES, LEAVES_STATIC = 0, -1, -2
"""Member epochs of requests that do not only keep a member alive."""


@dataclass(slots=True)
class EpochMember:
    """
    A member.

    Attributes:
        member_id: Its id.
        instance_id: Of a static member.
        client_id: Of its client.
        epoch: Its epoch, from the last answer.
        subscription: Its last subscription. None if that is not in the capture.
        assignment: Its last assignment, by topic or subtopology.
        active_ns: Its last accepted heartbeat.
        interval_ms: How often it should send one.
        evidence: Its last exchange.
        is_captured_from_start: Whether the capture has its first heartbeat.
    """

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    epoch: int = 0
    subscription: str | None = None
    assignment: dict[str, tuple[int, ...]] = field(default_factory=dict)
    active_ns: int = 0
    interval_ms: int = 0
    evidence: Evidence | None = None
    is_captured_from_start: bool = False

    @property
    def name(self) -> str:
        """The member for people: its id alone, a UUID, means nothing to them."""
        if self.instance_id or not self.client_id:
            return member_name(self.member_id, self.instance_id)
        return f"{self.client_id}-{self.member_id[:_ID_LENGTH]}"


@dataclass(slots=True)
class Trigger:
    """Something that makes the coordinator raise the group epoch."""

    time_ns: int
    word: str
    text: str
    evidence: Evidence


@dataclass(slots=True)
class Rebalance:
    """
    The way of a group to a new epoch.

    Attributes:
        epoch: The epoch that its members come to.
        former: The epoch before; None if it is not in the capture.
        time_ns: When it began.
        end_ns: When the last member so far came to it.
        before: The assignments before, by the name of the member.
        evidence: The exchanges with which members reached it.
        triggers: Possible causes, in time order.
        reached_ns: When each member came to it, by name.
        is_order_known: Whether responses came in the order of requests.
    """

    epoch: int
    former: int | None
    time_ns: int
    end_ns: int
    before: dict[str, str]
    evidence: list[Evidence]
    triggers: list[Trigger]
    reached_ns: dict[str, int] = field(default_factory=dict)
    is_order_known: bool = True


@dataclass(slots=True)
class EpochGroup:
    """
    A group at one coordinator.

    Attributes:
        name: Its id.
        coordinator: `address:port` of the broker.
        members: The captured members by id.
        epoch: The newest epoch of a member; None before the first.
        triggers: Possible triggers of the next epoch.
        last_trigger: The trigger of the current epoch.
        rebalance: The one under way.
        since_ns: When the last epoch was reached.
    """

    name: str
    coordinator: str
    members: dict[str, EpochMember] = field(default_factory=dict)
    epoch: int | None = None
    triggers: list[Trigger] = field(default_factory=list)
    last_trigger: Trigger | None = None
    rebalance: Rebalance | None = None
    since_ns: int | None = None

    def assignments(self) -> dict[str, str]:
        """Return the assignment of each member for people."""
        return {each.name: partitions_text(each.assignment) for each in self.members.values()}


def subscription_of(observed: ObservedExchange) -> str | None:
    """Return the subscription in a heartbeat; None if unchanged."""
    request = observed.request
    topics = request.get("subscribed_topic_names")
    pattern = request.get("subscribed_topic_regex")
    topology = request.get("topology")
    if topics is None and pattern is None and topology is None:
        return None
    parts = [] if topics is None else [", ".join(sorted(topics))]
    parts += [f"/{pattern}/"] if pattern else []
    if topology is not None:
        parts.append(f"topology of epoch {topology.epoch}")
    return " and ".join(each for each in parts if each)


def assignment_of(observed: ObservedExchange) -> dict[str, tuple[int, ...]] | None:
    """Return the assignment in a response; None if unchanged."""
    response = observed.response
    if "active_tasks" in response:
        kinds = {kind: response.get(f"{kind}_tasks") for kind in ("active", "standby", "warmup")}
        if all(tasks is None for tasks in kinds.values()):
            return None
        return {
            f"{'' if kind == 'active' else kind + ' '}{each.subtopology_id}": tuple(each.partitions)
            for kind, tasks in kinds.items()
            for each in tasks or ()
        }
    assignment: Mapping[str, Any] | None = response.get("assignment")
    if assignment is None:
        return None
    return {
        observed.topic(each): tuple(each.partitions)
        for each in assignment["topic_partitions"] or ()
    }
