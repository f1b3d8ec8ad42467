"""
The cluster: leaders, brokers, the controller, topics, ISR.

Metadata shows the cluster to clients; brokers and administrators change it. In KRaft the controller
in Metadata is any broker, so only controllers prove a change.

Source: KIP-455 (reassignment), KIP-460 (elections), KIP-497 (AlterPartition), KIP-631 (KRaft).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dissector.protocol.error_codes import error_name
from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import counted, listed
from timeline.trackers.administered_moves import AdministeredMoves, Move
from timeline.trackers.topic_recreations import TopicIds, cluster_of
from timeline.trackers.tracker import Tracker
from timeline.trackers.transaction_state import client_of

METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 3, 19, 20, 37
ELECT_LEADERS, REASSIGN, ALTER_PARTITION, REGISTER = 43, 45, 56, 62
UPDATE_METADATA, BEGIN_QUORUM = 6, 53

_TOPIC_EVENTS = {
    CREATE_TOPICS: ("topic created", "topic not created"),
    DELETE_TOPICS: ("topic deleted", "topic not deleted"),
    CREATE_PARTITIONS: ("topic partitions added", "topic partitions not added"),
}
"""API -> names of the events for success and failure."""

CREATED_ANEW = "topic created anew"

MAX_PARTITIONS = 100_000
"""Maximum number of partitions with a retained leader."""


@dataclass(slots=True)
class Leader:
    """Leader of a partition in a response."""

    leader_id: int
    epoch: int
    isr: tuple[int, ...]
    time_ns: int
    evidence: Evidence


@dataclass(slots=True)
class Cluster:
    """Last state of a cluster in responses."""

    brokers: dict[int, str] = field(default_factory=dict)
    time_ns: int = 0
    evidence: Evidence | None = None


class ClusterChanges(Tracker):
    """Follows clusters by id, which is None in Metadata before v2."""

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
        self._ids = TopicIds()
        self._deleted: States[tuple[str, str], bool] = States(Fresh(bool))
        self._moves = AdministeredMoves()
        self._partitions: States[tuple[str, str], set[int]] = States(Fresh(set), MAX_PARTITIONS)
        self._controller_epoch = -1

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange that shows or changes the cluster."""
        if observed.request is None or observed.response is None:
            return
        match observed.api_key:
            case 3:
                yield from self._metadata(observed)
            case 19 | 20 | 37:
                yield from self._topics(observed)
            case 45 | 43:
                yield from self._administered(observed)
            case 56:
                yield from self._isr(observed)
            case 62:
                yield from self._registered(observed)
            case 53:
                yield from self._quorum(observed)
            case 6:
                yield from self._updated(observed)

    def _metadata(self, observed: ObservedExchange) -> Iterator[Event]:
        response = observed.response
        subject = cluster_of(response)
        cluster = self._clusters.use(subject)
        for each in self._ids.learn(observed):
            self._forget(subject, each.topic)
            proof = [each.evidence, observed.evidence]
            text = f"{each.topic}: {each}"
            yield self._change(subject, CREATED_ANEW, text, each.since_ns, proof, observed)
        for topic in response.topics or ():
            name = topic["name"]
            if topic["error_code"] or not name or self._ids.is_stale(response, topic):
                continue
            for partition in topic["partitions"] or ():
                yield from self._leader(subject, name, partition, observed)
        if observed.end_ns < cluster.time_ns:
            return
        proof = [observed.evidence, *([cluster.evidence] if cluster.evidence else [])]
        brokers = {
            each["node_id"]: f"{each['host']}:{each['port']}" for each in response.brokers or ()
        }
        if cluster.brokers and brokers:
            yield from self._brokers(subject, cluster, brokers, proof, observed)
        cluster.brokers = brokers or cluster.brokers
        cluster.time_ns, cluster.evidence = observed.end_ns, observed.evidence

    def _brokers(
        self,
        subject: str,
        cluster: Cluster,
        brokers: dict[int, str],
        proof: list[Evidence],
        observed: ObservedExchange,
    ) -> Iterator[Event]:
        for event, ids in (
            ("broker gone", cluster.brokers.keys() - brokers.keys()),
            ("broker appeared", brokers.keys() - cluster.brokers.keys()),
        ):
            for node_id in sorted(ids):
                address = {**cluster.brokers, **brokers}[node_id]
                text = f"broker {node_id} at {address}"
                yield self._change(subject, event, text, cluster.time_ns, proof, observed)

    def _leader(
        self, subject: str, topic: str, partition: Any, observed: ObservedExchange
    ) -> Iterator[Event]:
        """Compare the leader of a partition with the previous one."""
        epoch = partition.get("leader_epoch", -1)
        isr, number = tuple(sorted(partition["isr_nodes"] or ())), partition["partition_index"]
        found = Leader(partition["leader_id"], epoch, isr, observed.end_ns, observed.evidence)
        known = self._leaders.use((subject, topic, number))
        former = known[0] if known else None
        if former is not None and (epoch < former.epoch or observed.end_ns < former.time_ns):
            return  # a stale response
        known[:] = [found]
        if former is None:
            self._partitions.use((subject, topic)).add(number)
            return
        place, proof = f"{topic} {number}", [former.evidence, observed.evidence]
        if former.leader_id != found.leader_id:
            if epoch == former.epoch >= 0 and min(former.leader_id, found.leader_id) >= 0:
                text = f"{topic}: another leader of partition {number} in leader epoch {epoch}"
                self._forget(subject, topic)
                yield from self._leader(subject, topic, partition, observed)
                yield self._change(
                    subject, CREATED_ANEW, text, former.time_ns, proof, observed, certain=False
                )
                return
            epochs = f", leader epoch {former.epoch} to {epoch}" if epoch >= 0 else ""
            brokers = f"from {_broker(former.leader_id)} to {_broker(found.leader_id)}"
            move = self._moves.of_leader(topic, number, found.leader_id, found.time_ns)
            text = f"{place}: {brokers}{epochs}"
            yield self._change(
                subject, "leader moved", text, former.time_ns, proof, observed, move=move
            )
        elif former.isr != isr:
            event = "ISR shrunk" if set(isr) < set(former.isr) else "ISR changed"
            event = "ISR grown" if set(isr) > set(former.isr) else event
            move = self._moves.of_isr(
                topic, number, frozenset(former.isr), frozenset(isr), found.time_ns
            )
            text = f"{place}: {_ids(former.isr)} -> {_ids(isr)}"
            yield self._change(subject, event, text, former.time_ns, proof, observed, move=move)

    def _forget(self, cluster: str, topic: str) -> None:
        """Forget the leaders of a topic that was deleted."""
        for partition in self._partitions.pop((cluster, topic), ()):
            self._leaders.pop((cluster, topic, partition), None)

    def _change(
        self,
        subject: str,
        event: str,
        text: str,
        since_ns: int,
        proof: list[Evidence],
        observed: ObservedExchange,
        *,
        move: Move | None = None,
        certain: bool = True,
    ) -> Event:
        """Return a change between two responses, after the request that caused it."""
        time_ns = since_ns if move is None else max(since_ns, move.mark.time_ns)
        return self.event(
            subject,
            event,
            text,
            time_ns=time_ns,
            end_ns=observed.end_ns,
            proof=proof if move is None else [*proof, move.evidence],
            brokers=[observed.broker],
            cause="" if move is None else move.word,
            certain=certain,
            since_ns=since_ns,
        )

    def _topics(self, observed: ObservedExchange) -> Iterator[Event]:
        """Report created and deleted topics, and added partitions."""
        done, refused = _TOPIC_EVENTS[observed.api_key or 0]
        if observed.api_key != DELETE_TOPICS and observed.request.get("validate_only"):
            return
        results = observed.response.get("topics", observed.response.get("responses"))
        if observed.response.get("results") is not None:
            results = observed.response.results
        for topic in results or ():
            name = observed.topic(topic)
            if topic.error_code:
                error = error_name(topic.error_code)
                text = f"{name}: {error}, for {client_of(observed)}"
                yield self.instant(observed, _at(observed), refused, text, cause=error)
            else:
                text = f"{name}, by {client_of(observed)}"
                event, text = self._follow(observed, topic, name, done, text)
                yield self.instant(observed, _at(observed), event, text)

    def _follow(
        self, observed: ObservedExchange, topic: Any, name: str, event: str, text: str
    ) -> tuple[str, str]:
        """Follow a deleted or created topic; return event and text, also of one created anew."""
        key = self._ids.cluster_at(observed.broker), name
        if observed.api_key == DELETE_TOPICS:
            self._forget(*key)
            self._ids.delete(observed, name)
            self._deleted.put(key, True)
        elif observed.api_key == CREATE_TOPICS:
            anew = self._ids.create(observed, topic)
            if anew is not None:
                return CREATED_ANEW, f"{text}: {anew}"
            if self._deleted.pop(key, False):
                return CREATED_ANEW, text
        return event, text

    def _administered(self, observed: ObservedExchange) -> Iterator[Event]:
        """Report reassignments and elections requested by an administrator."""
        if observed.error:
            return
        if observed.api_key == REASSIGN:
            event, movements = "reassignment", list(self._reassigned(observed))
        else:
            event, movements = "election", list(self._elected(observed))
        yield from self._not_moved(observed)
        if movements:
            partitions = counted(len(movements), "partition")
            text = f"{partitions} by {client_of(observed)}: {listed(movements)}"
            yield self.instant(observed, _at(observed), event, text)

    def _not_moved(self, observed: ObservedExchange) -> Iterator[Event]:
        """Report the partitions of a reassignment that are refused."""
        for (topic, partition), error in _refused(observed).items():
            text = f"{topic} {partition}: {error}, for {client_of(observed)}"
            yield self.instant(observed, _at(observed), "not reassigned", text, cause=error)

    def _reassigned(self, observed: ObservedExchange) -> Iterator[str]:
        """Follow reassigned partitions; return them as text."""
        refused = _refused(observed)
        for topic in observed.request.topics or ():
            for each in topic.partitions or ():
                place = topic.name, each.partition_index
                if place in refused:
                    continue
                if each.replicas is None:
                    self._moves.cancel(*place)
                    yield f"{topic.name} {each.partition_index} cancelled"
                    continue
                replicas = frozenset(each.replicas)
                self._moves.add(*place, Move("reassignment", observed.mark, replicas))
                yield f"{topic.name} {each.partition_index} to {_ids(each.replicas)}"

    def _elected(self, observed: ObservedExchange) -> Iterator[str]:
        """Follow elections of leaders; return the partitions as text."""
        for topic in observed.response.replica_election_results or ():
            for each in topic.partition_result or ():
                if not each.error_code:
                    move = Move("election", observed.mark)
                    self._moves.add(topic.topic, each.partition_id, move)
                    yield f"{topic.topic} {each.partition_id}"

    def _isr(self, observed: ObservedExchange) -> Iterator[Event]:
        """Report ISR changes requested by a leader."""
        if observed.error:
            return
        for topic in observed.response.topics or ():
            name = observed.topic(topic, "topic_name")
            for each in topic.partitions or ():
                if each.error_code:
                    continue
                place, isr = (name, each.partition_index), frozenset(each.isr or ())
                move = self._moves.of_isr(*place, isr, isr, observed.end_ns)
                cause = move.word if move is not None and isr <= move.replicas else ""
                text = f"{name} {each.partition_index}: {_ids(each.isr)}, leader {each.leader_id}"
                yield self.instant(observed, _at(observed), "ISR altered", text, cause=cause)

    def _registered(self, observed: ObservedExchange) -> Iterator[Event]:
        if not observed.error:
            request = observed.request
            text = f"broker {request.broker_id}, epoch {observed.response.broker_epoch}"
            yield self.instant(
                observed, request.cluster_id or _at(observed), "broker registered", text
            )

    def _updated(self, observed: ObservedExchange) -> Iterator[Event]:
        """Report announcements of a ZooKeeper controller to its brokers."""
        request = observed.request
        controller, epoch = request.controller_id, request.controller_epoch
        if observed.error or controller < 0 or epoch <= self._controller_epoch:
            return
        if self._controller_epoch >= 0:
            text = f"broker {controller} is the controller, controller epoch {epoch}"
            yield self.instant(observed, _at(observed), "controller changed", text)
        self._controller_epoch = epoch

    def _quorum(self, observed: ObservedExchange) -> Iterator[Event]:
        """Report the epoch of a new quorum leader."""
        if observed.error:
            return
        for topic in observed.request.topics or ():
            for each in topic.partitions or ():
                text = f"controller {each.leader_id} leads the quorum, epoch {each.leader_epoch}"
                subject = observed.request.cluster_id or _at(observed)
                yield self.instant(observed, subject, "controller elected", text)


def _refused(observed: ObservedExchange) -> dict[tuple[str, int], str]:
    """Return the partitions of a reassignment with an error."""
    return {
        (topic.name, each.partition_index): error_name(each.error_code)
        for topic in observed.response.get("responses") or ()
        for each in topic.partitions or ()
        if each.error_code
    }


def _broker(node_id: int) -> str:
    return f"broker {node_id}" if node_id >= 0 else "no leader"


def _at(observed: ObservedExchange) -> str:
    """Return the subject of a change by a broker, which lacks the cluster id."""
    return observed.broker


def _ids(ids: Any) -> str:
    return f"[{', '.join(map(str, ids or ()))}]"
