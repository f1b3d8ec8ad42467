"""
Fetch sessions of the target in the place of captured ones (KIP-227).

A session is with one broker. Where all partitions of a captured session have one leader on the
target too, the session is played as one; where they have several, each fetch is asked in full and
without a session. What a captured session holds is known at all times, so that it can be begun
anew when the target has lost it.

Source: Kafka, FetchMetadata.java, FetchSession.scala, FetchSessionHandler.java.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from construct import Container

from dissector.protocol.messages import Message
from replay.client.cluster import Cluster
from replay.fields.field_layout import Role, Scope
from replay.mapping.id_map import IdMap
from replay.model.outcome import Change
from replay.model.step import Step

INITIAL, FINAL = 0, -1
"""Epochs: of a fetch that begins a session, and of one that ends it or wants none."""

_LAST_EPOCH = 2**31 - 1


@dataclass(slots=True)
class Session:
    """
    One session of the capture, all in captured names, ids and offsets.

    Bodies are rewritten for the target in place: what is kept of them, and given out, are copies.

    Attributes:
        topics: Topic name or id -> partition -> what is asked of it.
        elements: Topic name or id -> the element of the request that has it, for its other fields.
        node: The broker of the target that has a session in its place; -1 for none.
        live_id: The id that it gave.
        epoch: The epoch that it expects next.
    """

    topics: dict[Any, dict[int, Container]] = field(default_factory=dict)
    elements: dict[Any, Container] = field(default_factory=dict)
    node: int = -1
    live_id: int = 0
    epoch: int = 0

    def take(self, body: Container) -> None:
        """Note what a captured request adds and forgets."""
        for topic in body.topics:
            title = _title(topic)
            self.elements[title] = Container(topic)
            partitions = self.topics.setdefault(title, {})
            for each in topic.partitions:
                partitions[each.partition] = Container(each)
        for topic in body.get("forgotten_topics_data") or ():
            partitions = self.topics.get(_title(topic), {})
            for number in topic.partitions:
                partitions.pop(number, None)

    def full(self) -> list[Container]:
        """Return all that the session asks for, as the topics of a request."""
        return [
            Container(self.elements[title], partitions=[Container(p) for p in partitions.values()])
            for title, partitions in self.topics.items()
            if partitions
        ]


@dataclass(slots=True)
class Use:
    """
    How one fetch uses a session.

    Attributes:
        session: What it is asked in; None for a fetch without one.
        is_new: Whether it begins a session on the target.
        is_final: Whether it ends one.
    """

    session: Session | None = None
    is_new: bool = False
    is_final: bool = False


class Sessions:
    """The fetch sessions of a pass, by captured broker and id."""

    def __init__(self, cluster: Cluster, world: IdMap) -> None:
        self._cluster = cluster
        self._world = world
        self._known: dict[tuple[str, int], Session] = {}

    def begin(self, step: Step, message: Message) -> Use | None:
        """
        Prepare a captured fetch, whose body may be made a full one; None where it is no fetch.

        Args:
            step: The step.
            message: Its request, in terms of the capture.
        """
        body = message.body
        if message.api != "Fetch" or body is None or "session_id" not in body:
            return None
        session = self._known.get((step.captured.broker, body.session_id))
        if body.session_epoch > INITIAL:
            session = session or self._open(step.captured.broker, body.session_id)
            session.take(body)
            return self._go_on(session, body)
        if body.session_epoch == FINAL:
            if body.session_id:
                self._known.pop((step.captured.broker, body.session_id), None)
            return Use(session, is_final=True)
        answer = step.captured.response_message()
        given = answer.body.session_id if answer is not None and answer.body is not None else 0
        if not given:
            return Use()
        session = self._open(step.captured.broker, given)
        session.take(body)
        return Use(session, is_new=True)

    def _open(self, broker: str, number: int) -> Session:
        session = self._known[broker, number] = Session()
        return session

    def _go_on(self, session: Session, body: Container) -> Use:
        if session.node >= 0 and self._nodes(session) <= {session.node}:
            return Use(session)
        self.restart(session, body)
        return Use(session, is_new=True)

    def restart(self, session: Session, body: Container) -> None:
        """Make a captured fetch in a session one that asks for all that is in it."""
        session.node = -1
        body.topics = session.full()
        if "forgotten_topics_data" in body:
            body.forgotten_topics_data = []

    def _nodes(self, session: Session) -> set[int]:
        """Return which brokers lead the partitions of a session."""
        nodes = set()
        for title, partitions in session.topics.items():
            name = title if isinstance(title, str) else None
            topic = self._world.topic_of(Scope(topic=name, topic_id=None if name else title))
            live = self._world.names.topic(topic) if topic else None
            for number in partitions:
                leader = self._cluster.leader(live, number) if live else None
                if leader is not None:
                    nodes.add(leader.node)
        return nodes

    def put(self, use: Use, parts: list[tuple[int, Container]]) -> list[Change]:
        """Put id and epoch of the target's session into the requests; return what was changed."""
        session = use.session
        captured = parts[0][1].session_id, parts[0][1].session_epoch
        sent = 0, FINAL
        if len(parts) == 1 and session is not None:
            if use.is_new:
                sent = 0, INITIAL
            elif session.node == parts[0][0]:
                sent = session.live_id, FINAL if use.is_final else session.epoch
        elif len(parts) == 1 and captured[1] == INITIAL:
            sent = 0, INITIAL
        for _, body in parts:
            body.session_id, body.session_epoch = sent
        names = ("session_id", Role.SESSION_ID), ("session_epoch", Role.SESSION_EPOCH)
        return [
            Change(name, role, before, after)
            for (name, role), before, after in zip(names, captured, sent, strict=True)
            if before != after
        ]

    def finish(self, use: Use, parts: list[tuple[int, Container]], answer: Container) -> None:
        """Note what became of a fetch that was asked of one broker, or of several."""
        session = use.session
        if session is None:
            return
        if len(parts) != 1 or answer.get("error_code") or use.is_final:
            session.node = -1
        elif use.is_new:
            session.node = parts[0][0] if answer.session_id else -1
            session.live_id, session.epoch = answer.session_id, 1
        else:
            session.epoch = session.epoch % _LAST_EPOCH + 1


def _title(topic: Container) -> Any:
    return topic.get("topic") or topic.get("topic_id")
