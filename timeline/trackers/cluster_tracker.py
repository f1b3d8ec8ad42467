"""
The cluster: leaders that move, brokers that come and go, the controller, topics, ISR.

Clients see it in Metadata; brokers and administrators change it. The controller that Metadata names
is any broker in KRaft, so only the controllers themselves prove a change.

Source: KIP-455 (reassignment), KIP-460 (elections), KIP-497 (AlterPartition), KIP-631 (KRaft).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dissector.protocol.error_codes import error_name
from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import Seen
from timeline.events.states import Fresh, States
from timeline.events.words import counted, listed
from timeline.trackers.tracker import Tracker
from timeline.trackers.transaction_state import client_of

METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 3, 19, 20, 37
ELECT_LEADERS, REASSIGN, ALTER_PARTITION, REGISTER = 43, 45, 56, 62
UPDATE_METADATA, BEGIN_QUORUM = 6, 53

MAX_PARTITIONS = 100_000
"""Partitions whose leaders are retained."""


@dataclass(slots=True)
class Leader:
    """The leader of a partition, as an answer named it."""

    leader_id: int
    epoch: int
    isr: tuple[int, ...]
    time_ns: int
    evidence: Evidence


@dataclass(slots=True)
class Cluster:
    """What answers said of a cluster last."""

    brokers: dict[int, str] = field(default_factory=dict)
    time_ns: int = 0
    evidence: Evidence | None = None


class ClusterChanges(Tracker):
    """Follows clusters, by their id; Metadata before v2 has none."""

    kind: ClassVar[str] = "cluster"
    apis: ClassVar[frozenset[int]] = frozenset(
        (
            *(METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS),
            *(ELECT_LEADERS, REASSIGN, ALTER_PARTITION, REGISTER),
            *(UPDATE_METADATA, BEGIN_QUORUM),
        )
    )

    def __init__(self) -> None:
        self._clusters: States[str, Cluster] = States(Fresh(Cluster))
        self._leaders: States[tuple[str, str, int], list[Leader]] = States(
            Fresh(list), MAX_PARTITIONS
        )
        self._controller_epoch = -1

    def observe(self, seen: Seen) -> Iterator[Event]:
        """Take an exchange that shows or changes the cluster."""
        if seen.request is None or seen.response is None:
            return
        match seen.api_key:
            case 3:
                yield from self._metadata(seen)
            case 19 | 20 | 37:
                yield from self._topics(seen)
            case 45 | 43:
                yield from self._administered(seen)
            case 56:
                yield from self._isr(seen)
            case 62:
                yield from self._registered(seen)
            case 53:
                yield from self._quorum(seen)
            case 6:
                yield from self._updated(seen)

    def _metadata(self, seen: Seen) -> Iterator[Event]:
        response = seen.response
        subject = response.get("cluster_id") or "unknown"
        cluster = self._clusters.use(subject)
        for topic in response.topics or ():
            if topic.error_code or not topic.name:
                continue
            for partition in topic.partitions or ():
                yield from self._leader(subject, topic.name, partition, seen)
        if seen.end_ns < cluster.time_ns:
            return
        proof = [seen.evidence, *([cluster.evidence] if cluster.evidence else [])]
        brokers = {each.node_id: f"{each.host}:{each.port}" for each in response.brokers or ()}
        if cluster.brokers and brokers:
            yield from self._brokers(subject, cluster, brokers, proof, seen)
        cluster.brokers = brokers or cluster.brokers
        cluster.time_ns, cluster.evidence = seen.end_ns, seen.evidence

    def _brokers(
        self,
        subject: str,
        cluster: Cluster,
        brokers: dict[int, str],
        proof: list[Evidence],
        seen: Seen,
    ) -> Iterator[Event]:
        for event, ids in (
            ("broker gone", cluster.brokers.keys() - brokers.keys()),
            ("broker appeared", brokers.keys() - cluster.brokers.keys()),
        ):
            for node_id in sorted(ids):
                address = {**cluster.brokers, **brokers}[node_id]
                text = f"broker {node_id} at {address}"
                yield self._change(subject, event, text, cluster.time_ns, proof, seen)

    def _leader(self, subject: str, topic: str, partition: Any, seen: Seen) -> Iterator[Event]:
        """Compare the leader of a partition with the one that was known."""
        epoch = partition.get("leader_epoch", -1)
        isr = tuple(sorted(partition.isr_nodes or ()))
        found = Leader(partition.leader_id, epoch, isr, seen.end_ns, seen.evidence)
        known = self._leaders.use((subject, topic, partition.partition_index))
        former = known[0] if known else None
        if former is not None and (epoch < former.epoch or seen.end_ns < former.time_ns):
            return  # an answer from a broker that is behind
        known[:] = [found]
        if former is None:
            return
        place = f"{topic} {partition.partition_index}"
        proof = [former.evidence, seen.evidence]
        if former.leader_id != found.leader_id:
            epochs = f", leader epoch {former.epoch} to {epoch}" if epoch >= 0 else ""
            brokers = f"from {_broker(former.leader_id)} to {_broker(found.leader_id)}"
            text = f"{place}: {brokers}{epochs}"
            yield self._change(subject, "leader moved", text, former.time_ns, proof, seen)
        elif former.isr != isr:
            event = "ISR shrunk" if set(isr) < set(former.isr) else "ISR changed"
            event = "ISR grown" if set(isr) > set(former.isr) else event
            text = f"{place}: {_ids(former.isr)} -> {_ids(isr)}"
            yield self._change(subject, event, text, former.time_ns, proof, seen)

    def _change(
        self,
        subject: str,
        event: str,
        text: str,
        since_ns: int,
        proof: list[Evidence],
        seen: Seen,
    ) -> Event:
        """Return a change between two answers: it happened between them."""
        return self.event(
            subject,
            event,
            text,
            time_ns=since_ns,
            end_ns=seen.end_ns,
            proof=proof,
            brokers=[seen.broker],
            since_ns=since_ns,
        )

    def _topics(self, seen: Seen) -> Iterator[Event]:
        """Take topics that are created or deleted, or that get partitions."""
        api = {19: "created", 20: "deleted", 37: "partitions added"}[seen.api_key or 0]
        if seen.api_key != DELETE_TOPICS and seen.request.get("validate_only"):
            return
        results = seen.response.get("topics", seen.response.get("responses"))
        if seen.response.get("results") is not None:
            results = seen.response.results
        for topic in results or ():
            name = seen.topic(topic)
            if topic.error_code:
                error = error_name(topic.error_code)
                text = f"{name}: {error}, for {client_of(seen)}"
                yield self.instant(seen, _at(seen), f"topic not {api}", text, cause=error)
            else:
                yield self.instant(seen, _at(seen), f"topic {api}", f"{name}, by {client_of(seen)}")

    def _administered(self, seen: Seen) -> Iterator[Event]:
        """Take reassignments and elections, which an administrator asks for."""
        if seen.error:
            return
        if seen.api_key == REASSIGN:
            event = "reassignment"
            moves = [
                f"{topic.name} {each.partition_index} to {_ids(each.replicas)}"
                if each.replicas is not None
                else f"{topic.name} {each.partition_index} cancelled"
                for topic in seen.request.topics or ()
                for each in topic.partitions or ()
            ]
        else:
            event = "election"
            moves = [
                f"{topic.topic} {each.partition_id}"
                for topic in seen.response.replica_election_results or ()
                for each in topic.partition_result or ()
                if not each.error_code
            ]
        if moves:
            text = f"{counted(len(moves), 'partition')} by {client_of(seen)}: {listed(moves)}"
            yield self.instant(seen, _at(seen), event, text)

    def _isr(self, seen: Seen) -> Iterator[Event]:
        """Take the changes of ISR that a leader asks the controller for."""
        if seen.error:
            return
        for topic in seen.response.topics or ():
            name = seen.topic(topic, "topic_name")
            for each in topic.partitions or ():
                if each.error_code:
                    continue
                text = f"{name} {each.partition_index}: {_ids(each.isr)}, leader {each.leader_id}"
                yield self.instant(seen, _at(seen), "ISR altered", text)

    def _registered(self, seen: Seen) -> Iterator[Event]:
        if not seen.error:
            request = seen.request
            text = f"broker {request.broker_id}, epoch {seen.response.broker_epoch}"
            yield self.instant(seen, request.cluster_id or _at(seen), "broker registered", text)

    def _updated(self, seen: Seen) -> Iterator[Event]:
        """Take what a controller of a cluster with ZooKeeper announces to its brokers."""
        request = seen.request
        controller, epoch = request.controller_id, request.controller_epoch
        if seen.error or controller < 0 or epoch <= self._controller_epoch:
            return
        if self._controller_epoch >= 0:
            text = f"broker {controller} is the controller, controller epoch {epoch}"
            yield self.instant(seen, _at(seen), "controller changed", text)
        self._controller_epoch = epoch

    def _quorum(self, seen: Seen) -> Iterator[Event]:
        """Take the message with which a new leader of the quorum begins its epoch."""
        if seen.error:
            return
        for topic in seen.request.topics or ():
            for each in topic.partitions or ():
                text = f"controller {each.leader_id} leads the quorum, epoch {each.leader_epoch}"
                subject = seen.request.cluster_id or _at(seen)
                yield self.instant(seen, subject, "controller elected", text)


def _broker(node_id: int) -> str:
    return f"broker {node_id}" if node_id >= 0 else "no leader"


def _at(seen: Seen) -> str:
    """Return the subject of a change that a broker made: the cluster's id is not in it."""
    return seen.broker


def _ids(ids: Any) -> str:
    return f"[{', '.join(map(str, ids or ()))}]"
