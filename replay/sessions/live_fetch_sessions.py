"""
Live fetch sessions: the target's counterparts of captured fetch sessions (KIP-227).

A session belongs to one broker. If all partitions of a captured session have the same leader on the
target too, it is replayed as one session; if they have several leaders, each fetch is sent in full
and without a session. The contents of each captured session are tracked, so that it can be begun
again after the target has lost it.

Source: Kafka, FetchMetadata.java, FetchSession.scala, FetchSessionHandler.java.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from cluster.client.cluster import Cluster
from cluster.conversion.change import Change
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from replay.mapping.id_map import IdMap
from replay.model.step import Step
from replay.sessions.fetch_limits import (
    CLOSED,
    Fields,
    LimitKey,
    TopicKey,
    fetch_limits,
    forgotten_topics,
    limited,
    topic_key,
    topics_of,
)

INITIAL, FINAL = 0, -1
"""Epochs of a fetch that begins a session, and of one that ends it or uses none."""

_LAST_EPOCH = 2**31 - 1


@dataclass(slots=True)
class FetchSession:
    """
    A captured session, with captured names, ids and offsets.

    Bodies are rewritten for the target in place, so this class stores and returns copies of them.

    Attributes:
        topics: Topic -> partition -> its element in the request.
        elements: Topic -> its element in the request, for the other fields.
        node: The broker of the target with the live session; -1 for none.
        live_id: The id of the live session.
        epoch: The epoch that the broker expects next.
        live: The partitions in the live session, as asked for with captured names and offsets.
        nodes: The brokers that lead its partitions.
        has_all_leaders: Whether the leader of each partition is known.
    """

    topics: dict[TopicKey, dict[int, Fields]] = field(default_factory=dict)
    elements: dict[TopicKey, Fields] = field(default_factory=dict)
    node: int = -1
    live_id: int = 0
    epoch: int = 0
    live: dict[LimitKey, Fields] = field(default_factory=dict)
    nodes: frozenset[int] = frozenset()
    has_all_leaders: bool = False
    _nodes_as_of: int = -1

    def apply(self, body: Container) -> None:
        """Apply the partitions that a captured request adds and forgets."""
        for topic in body["topics"]:
            name = topic_key(topic)
            self.elements[name] = dict(topic)
            partitions = self.topics.setdefault(name, {})
            for each in topic["partitions"]:
                if each["partition"] not in partitions:
                    self._nodes_as_of = -1
                partitions[each["partition"]] = dict(each)
        for topic in body.get("forgotten_topics_data") or ():
            self._nodes_as_of = -1
            partitions = self.topics.get(topic_key(topic), {})
            for number in topic["partitions"]:
                partitions.pop(number, None)

    def find_nodes(self, cluster: Cluster, ids: IdMap) -> None:
        """Find the leaders of its partitions again, if they may have changed."""
        if self._nodes_as_of == cluster.revision:
            return
        nodes: set[int | None] = set()
        for key, partitions in self.topics.items():
            topic = captured_topic(self.elements[key], ids)
            live = ids.names.topic(topic) if topic else None
            for number in partitions:
                leader = cluster.leader(live, number) if live else None
                nodes.add(None if leader is None else leader.node)
        self.has_all_leaders = None not in nodes
        self.nodes = frozenset(node for node in nodes if node is not None)
        self._nodes_as_of = cluster.revision

    def wanted(self, limits: Mapping[LimitKey, int]) -> dict[LimitKey, Fields]:
        """Return its partitions to ask for: those with limits, or all."""
        found = {
            key: limited(self.topics[key[0]][key[1]], limit)
            for key, limit in limits.items()
            if key[1] in self.topics.get(key[0], ())
        }
        return found or {
            (name, number): limited(each, CLOSED)
            for name, partitions in self.topics.items()
            for number, each in partitions.items()
        }

    @property
    def led_topics(self) -> Mapping[TopicKey, Mapping[int, Fields]]:
        """Its partitions, if the leader of each is known, one of `nodes`."""
        return self.topics if self.has_all_leaders else {}

    def full_topics(self) -> list[Container]:
        """Return all partitions of the session, as the topics of a request."""
        return [
            Container(self.elements[name], partitions=[Container(p) for p in partitions.values()])
            for name, partitions in self.topics.items()
            if partitions
        ]


@dataclass(slots=True)
class SessionUse:
    """
    How one fetch uses a session.

    Attributes:
        session: The session of the fetch; None for a fetch without one.
        is_new: Whether it begins a session on the target.
        is_final: Whether it ends one.
        attempts: How often it was sent before.
        left_out: Topic (name or id) and number of the partitions that a fetch without a session
            does not ask for.
    """

    session: FetchSession | None = None
    is_new: bool = False
    is_final: bool = False
    attempts: int = 0
    left_out: Collection[tuple[Any, int]] = ()


def captured_topic(topic: Fields, ids: IdMap) -> str | None:
    """Return the captured name of a topic in a request, also if that has only its id."""
    name, topic_id = topic.get("topic"), topic.get("topic_id")
    return name or (None if topic_id is None else ids.captured_topics.topic_name(topic_id))


class FetchSessions:
    """The fetch sessions of a pass, by captured broker and id."""

    def __init__(self, cluster: Cluster, ids: IdMap) -> None:
        self._cluster = cluster
        self._ids = ids
        self._sessions: dict[tuple[str, int], FetchSession] = {}

    def begin(self, step: Step, message: Message) -> SessionUse | None:
        """
        Prepare a captured fetch; its body may be replaced by a full one.

        Args:
            step: The step.
            message: Its request, with captured names and ids.

        Returns:
            How it uses a session; None if it is not a fetch.
        """
        body = message.body
        if message.api != "Fetch" or body is None:
            return None
        if "session_id" not in body or (body.session_epoch == FINAL and not body.session_id):
            return SessionUse()
        session = self._sessions.get((step.captured.broker, body["session_id"]))
        if body["session_epoch"] > INITIAL:
            session = session or self._open(step.captured.broker, body["session_id"])
            session.apply(body)
            return self._continue(session, body)
        if body.session_epoch == FINAL:
            self._sessions.pop((step.captured.broker, body.session_id), None)
            return SessionUse(session, is_final=True)
        response = step.captured.response_message()
        given = (
            response.body.session_id if response is not None and response.body is not None else 0
        )
        if not given:
            return SessionUse()
        session = self._open(step.captured.broker, given)
        session.apply(body)
        return SessionUse(session, is_new=True)

    def lone_node(self, broker: str, body: Container) -> int | None:
        """
        Return the broker that leads all partitions of a fetch, if no session begins or ends.

        Args:
            broker: The captured broker.
            body: The captured request.

        Returns:
            Its node id; None if there are several, an unknown one, or the session begins anew.
        """
        nodes: set[int | None] = set()
        known: Mapping[TopicKey, Mapping[int, Fields]] = {}
        if "session_id" in body and (body["session_epoch"] != FINAL or body["session_id"]):
            session = self._sessions.get((broker, body["session_id"]))
            if session is None or session.node < 0 or body["session_epoch"] <= INITIAL:
                return None
            session.find_nodes(self._cluster, self._ids)
            nodes, known = {session.node, *session.nodes}, session.led_topics
        for topic in body["topics"]:
            found = known.get(topic_key(topic), ())
            for each in topic["partitions"]:
                if each["partition"] not in found:
                    nodes.add(self._leader(topic, each["partition"]))
        return nodes.pop() if len(nodes) == 1 else None

    def _leader(self, topic: Fields, number: int) -> int | None:
        """Return the broker that leads a partition of a topic in a captured request."""
        name = captured_topic(topic, self._ids)
        leader = self._cluster.leader(self._ids.names.topic(name), number) if name else None
        return None if leader is None else leader.node

    def limit(
        self, use: SessionUse, version: int, body: Container, captured: Container | None
    ) -> None:
        """
        Limit a fetch to what the captured response held.

        A broker keeps the partitions of a session, with their limits. So the request has those that
        differ from what was asked before, and takes out the others.

        Args:
            use: How it uses a session; gets the partitions that are left out.
            version: Its captured version.
            body: The request, with captured names and ids; it is modified.
            captured: The body of the captured response; None without one.
        """
        limits = fetch_limits(version, captured, use.attempts)
        use.attempts += 1
        if limits is None or use.is_final:
            return
        elements = {topic_key(topic): topic for topic in body["topics"]}
        listed = {
            (name, each["partition"]): each
            for name, topic in elements.items()
            for each in topic["partitions"]
        }
        session = use.session
        if session is None:
            asked = {
                key: limited(each, limits.get(key, CLOSED))
                for key, each in listed.items()
                if key in limits
            } or {key: limited(each, CLOSED) for key, each in listed.items()}
            use.left_out = {
                (elements[key].get("topic") or elements[key].get("topic_id"), number)
                for key, number in listed.keys() - asked.keys()
            }
            body.topics = topics_of(elements, asked)
            return
        asked, before = session.wanted(limits), {} if use.is_new else session.live
        changed = {
            key: each for key, each in asked.items() if key in listed or before.get(key) != each
        }
        body.topics = topics_of(session.elements, changed)
        if "forgotten_topics_data" in body:
            gone = before.keys() - asked.keys()
            body["forgotten_topics_data"] = forgotten_topics(session.elements, gone)
        session.live = asked

    def _open(self, broker: str, number: int) -> FetchSession:
        session = self._sessions[broker, number] = FetchSession()
        return session

    def _continue(self, session: FetchSession, body: Container) -> SessionUse:
        session.find_nodes(self._cluster, self._ids)
        if session.node >= 0 and session.nodes <= {session.node}:
            return SessionUse(session)
        self.restart(session, body)
        return SessionUse(session, is_new=True)

    def restart(self, session: FetchSession, body: Container) -> None:
        """Turn an incremental fetch into a full one, which begins the session again."""
        session.node = -1
        body.topics = session.full_topics()
        if "forgotten_topics_data" in body:
            body.forgotten_topics_data = []

    def assign_session(self, use: SessionUse, parts: list[tuple[int, Container]]) -> list[Change]:
        """Set id and epoch of the live session in the requests; return the changes."""
        session = use.session
        if "session_id" not in parts[0][1]:
            return []
        captured = parts[0][1]["session_id"], parts[0][1]["session_epoch"]
        sent = 0, FINAL
        if len(parts) == 1 and session is not None:
            session.find_nodes(self._cluster, self._ids)
            if use.is_new and len(session.nodes) < 2:  # more leaders share no session
                sent = 0, INITIAL
            elif use.is_new:
                sent = 0, FINAL
            elif session.node == parts[0][0]:
                sent = session.live_id, FINAL if use.is_final else session.epoch
        elif len(parts) == 1 and captured[1] == INITIAL:
            sent = 0, INITIAL
        for _, body in parts:
            body["session_id"], body["session_epoch"] = sent
        changes = []
        if captured[0] != sent[0]:
            changes.append(Change("session_id", Role.SESSION_ID, captured[0], sent[0]))
        if captured[1] != sent[1]:
            changes.append(Change("session_epoch", Role.SESSION_EPOCH, captured[1], sent[1]))
        return changes

    def record_response(
        self, use: SessionUse, parts: list[tuple[int, Container]], response: Container
    ) -> None:
        """Record the response to a fetch that was sent to one or more brokers."""
        session = use.session
        if session is None:
            return
        if len(parts) != 1 or response.get("error_code") or use.is_final:
            session.node = -1
        elif use.is_new:
            session.node = parts[0][0] if response.session_id else -1
            session.live_id, session.epoch = response.session_id, 1
        else:
            session.epoch = session.epoch % _LAST_EPOCH + 1
