"""State of a group with member epochs: consumer, share and streams groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timeline.events.event import Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.words import member_name, partitions_text

_ID_LENGTH = 6

JOINS, LEAVES, LEAVES_STATIC = 0, -1, -2
"""Member epochs in requests that join or leave."""


@dataclass(slots=True)
class EpochMember:
    """
    A member of a group with member epochs.

    Attributes:
        member_id: Member id.
        instance_id: Instance id of a static member.
        client_id: Client id.
        epoch: Epoch in the last response.
        subscription: Last subscription; None if not captured.
        assignment: Last assignment, by topic or subtopology.
        active_ns: Time of the last accepted heartbeat.
        interval_ms: Heartbeat interval.
        evidence: The last exchange.
        is_captured_from_start: Whether the first heartbeat is captured.
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
        """Name of the member for texts, with its client, as ids are UUIDs."""
        if self.instance_id or not self.client_id:
            return member_name(self.member_id, self.instance_id)
        return f"{self.client_id}-{self.member_id[:_ID_LENGTH]}"


@dataclass(slots=True)
class Trigger:
    """An event after which the coordinator raises the group epoch."""

    time_ns: int
    word: str
    text: str
    evidence: Evidence


@dataclass(slots=True)
class Rebalance:
    """
    Transition of a group to a new epoch.

    Attributes:
        epoch: The new epoch.
        former: The previous epoch; None if not captured.
        time_ns: Begin.
        end_ns: Time at which the last member so far reached the epoch.
        before: Previous assignments by member name.
        evidence: Exchanges in which members reached the epoch.
        triggers: Possible causes, in time order.
        reached_ns: Time at which each member reached the epoch, by name.
        is_order_known: Whether responses are in the order of requests.
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
        name: Group id.
        coordinator: `address:port` of the broker.
        members: Captured members by id.
        epoch: Highest member epoch; None before the first.
        triggers: Possible triggers of the next epoch.
        last_trigger: Trigger of the current epoch.
        rebalance: The current rebalance; None without one.
        since_ns: Time at which the last epoch was reached.
        away_ns: Last time at which the broker was not, or not yet, the coordinator.
    """

    name: str
    coordinator: str
    members: dict[str, EpochMember] = field(default_factory=dict)
    epoch: int | None = None
    triggers: list[Trigger] = field(default_factory=list)
    last_trigger: Trigger | None = None
    rebalance: Rebalance | None = None
    since_ns: int | None = None
    away_ns: int = 0

    def assignments(self) -> dict[str, str]:
        """Return the assignment of each member as text."""
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
