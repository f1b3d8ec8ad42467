"""Makes a plan of a capture."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import numpy as np

from dissector.capture.columns import Int64s
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.exchange_table import ANSWERED, Exchanges
from dissector.filter import Filter
from dissector.protocol.apis import KEYS
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message
from replay.model.kafka_enums import INTERNAL_TOPICS
from replay.model.step import CapturedExchange
from replay.plan.completeness import completeness
from replay.plan.concurrent_changes import overlaps
from replay.plan.dependencies import Causes, Model
from replay.plan.exclusion_policy import (
    BROKERS_TALK,
    changes,
    is_between_brokers,
    is_neutral,
    why_left_out,
    why_unheard_of,
    why_unsettled,
)
from replay.plan.missing_prerequisites import lacking
from replay.plan.planned_steps import PlannedSteps
from replay.plan.read_write_sets import Footprint, Log, footprint
from replay.plan.request_shapes import Shapes, producer_at
from replay.plan.sequence_gaps import HolesSeen, taken
from replay.plan.session_starts import MIDWAY, SessionsSeen
from replay.plan.spill import NONE

TO_CONTROLLER = "goes to a controller, which is no broker of the target"

_LONGEST_SOFTWARE = 100
"""Maximum length of a client's software name and version, in characters."""

_VOTE = KEYS["Vote"]
"""The key of Vote, which only controllers offer (KIP-595)."""


class Maker:
    """Makes a plan in one pass over a capture, and one over the data collected in it."""

    def __init__(
        self, plan: PlannedSteps, capture: Capture, chosen: Filter | None, allow: frozenset[str]
    ) -> None:
        self._plan = plan
        self._capture = capture
        self._filter = chosen
        self._allow = allow
        self._causes = Causes()
        self._reasons: dict[int, str] = {}
        self._unheard_of: dict[int, tuple[str, list[Log]]] = {}
        self._changes: dict[int, frozenset[str]] = {}
        self._talks: dict[int, set[bool]] = {}
        self._controllers: set[str] = set()
        self._models: dict[int, tuple[str | None, Model, list[Log | None]]] = {}
        self._holes = HolesSeen()
        self._sessions = SessionsSeen()
        self._shapes = Shapes()
        self._assignments: dict[tuple[str, int], int] = {}
        self._counts: Counter[tuple[int, str]] = Counter()

    def fill(self) -> None:
        """Read the capture and fill the plan."""
        plan, capture = self._plan, self._capture
        for window in capture.windows():
            self._note_problems(window)
            for exchange in self._unlike(window):
                self._note(exchange)
        plan.shapes = self._shapes.known
        self._judge()
        steps = self._number()
        self._connect()
        if plan.is_partial:
            self._note_holes(steps)
        for topic, count in self._causes.partitions.items():
            title = self._name(topic) if isinstance(topic, UUID) else topic
            if title and title not in INTERNAL_TOPICS:
                plan.topics[title] = max(plan.topics.get(title, 1), count)
        plan.created = frozenset(self._causes.lacked & plan.topics.keys())

    def _unlike(self, window: Window) -> Iterator[Exchange]:
        """Yield the exchanges of a window that need the slow path, and note the others."""
        capture, table, reading = self._capture, window.exchanges, self._capture.reading
        assert reading is not None
        if self._filter is not None:
            yield from capture.exchanges_of(window)
            return
        for row, may_be_alike in enumerate(_plain(table)):
            if not may_be_alike or not self._note_alike(table, row):
                yield reading.exchange(table, row, capture.names)

    def _note_problems(self, window: Window) -> None:
        self._plan.problems += [f"{name}: {problem}" for name, problem in window.problems]

    def _note(self, exchange: Exchange) -> None:
        request = exchange.request
        connection = exchange.connection
        if request is None:
            self._plan.orphans += 1
            self._counts[connection, "orphan"] += 1
            return
        exchange.facts  # noqa: B018 (names of topic ids, also of those that are filtered)
        self._plan.topic_ids.update(
            (topic_id, name) for facts in exchange.facts for topic_id, name in facts.names.items()
        )
        self._note_brokers(exchange)
        if software := _software(request):
            self._plan.clients[connection] = software
        if not is_neutral(request):
            self._talks.setdefault(connection, set()).add(is_between_brokers(request))
        if self._filter is not None and not self._filter.matches(exchange):
            self._plan.filtered += 1
            return
        self._counts[connection, "request"] += 1
        self._counts[connection, exchange.status] += 1
        shape = self._shapes.note(connection, request, exchange.response)
        places = list(taken(request, exchange.response))
        number = self._plan._spool.add(_captured(exchange, request), shape)
        self._holes.note(number, places)
        reason = why_left_out(request, self._allow)
        reason = reason or why_unsettled(request.api or "", exchange.response)
        if reason:
            self._reasons[number] = reason
        if changed := changes(request, exchange.response):
            self._changes[number] = changed
        self._sessions.note(number, exchange, request)
        self._note_group(number, request)
        found = footprint(request, exchange.response)
        self._note_unheard_of(number, exchange, found)
        self._note_group_topics(found)
        self._causes.add(found)
        if shape != NONE:
            logs = [log for log, _ in places]
            self._models[shape] = request.client_id, self._causes.model(found), logs

    def _note_alike(self, table: Exchanges, row: int) -> bool:
        """Note an exchange of known shape without decoding it; False if it needs the slow path."""
        connection = int(table.connection[row])
        request, response = (table.frame(each, row) for each in (table.request, table.response))
        assert request is not None
        assert response is not None
        found = self._shapes.find(connection, request, response)
        if found is None:
            return False
        shape, batches, offsets = found
        client_id, model, logs = self._models[shape]
        self._counts[connection, "request"] += 1
        self._talks.setdefault(connection, set()).add(False)
        spool = self._plan._spool
        captured = CapturedExchange(
            connection,
            *spool.ends[connection],
            PRODUCE,
            int(table.api_version[row]),
            int(table.correlation_id[row]),
            client_id,
            request,
            response,
            True,
            int(table.request.time_ns[row]),
            int(table.response.time_ns[row]),
        )
        written = [producer_at(request, begin) for begin in batches]
        self._holes.note(spool.add(captured, shape), zip(logs, written, strict=True))
        self._causes.add_alike(model, offsets, {producer[0] for producer in written})
        return True

    def _note_unheard_of(self, number: int, exchange: Exchange, found: Footprint) -> None:
        """Note a Produce request that was refused because its partition was new."""
        if why := why_unheard_of(exchange.api or "", exchange.response):
            partitions = [thing[1:] for thing in found.writes if thing[0] == "partition"]
            self._unheard_of[number] = why, partitions

    def _note_group(self, number: int, request: Message) -> None:
        """Note the SyncGroup request in which a leader assigns partitions."""
        body = request.body
        if body is not None and request.api == "SyncGroup" and body.assignments:
            self._assignments[body.group_id, body.generation_id] = number

    def _note_group_topics(self, found: Footprint) -> None:
        """Note the topics whose offsets each group commits or fetches."""
        named = [thing[:2] for thing in found.reads | found.writes if len(thing) > 1]
        topics = {name for kind, name in named if kind == "topic" and isinstance(name, str)}
        for group in (name for kind, name in named if kind == "group"):
            if topics:
                self._plan.group_topics.setdefault(group, set()).update(topics)

    def _note_brokers(self, exchange: Exchange) -> None:
        """Note the addresses of brokers, and which addresses belong to controllers."""
        answer, plan = exchange.response.body if exchange.response else None, self._plan
        if answer is None:
            return
        if exchange.api == "ApiVersions":
            if any(each.api_key == _VOTE for each in answer.api_keys or ()):
                self._controllers.add(exchange.broker)
            asked = exchange.request.body if exchange.request else None
            if asked is not None and not answer.error_code and asked.get("cluster_id"):
                plan.cluster_id = plan.cluster_id or asked.cluster_id
                if asked.node_id >= 0:
                    plan.connected[exchange.broker] = asked.node_id
        elif exchange.api == "Metadata":
            plan.cluster_id = answer.get("cluster_id") or plan.cluster_id
            for each in answer.brokers:
                host = f"[{each.host}]" if ":" in each.host else each.host
                plan.brokers[f"{host}:{each.port}"] = each.node_id

    def _judge(self) -> None:
        """Leave out the requests that only the whole capture shows to be unfit."""
        spool = self._plan._spool
        for number in range(len(spool)):
            connection = spool.connection(number)
            if self._talks.get(connection) == {True}:
                self._reasons.setdefault(number, BROKERS_TALK)
            elif spool.ends[connection][1] in self._controllers:
                self._reasons.setdefault(number, TO_CONTROLLER)
        for number, (why, logs) in self._unheard_of.items():
            if all(self._is_written_later(number, log) for log in logs):
                self._reasons.setdefault(number, why)
        for number in self._sessions.midway():
            self._reasons.setdefault(number, MIDWAY)

    def _is_written_later(self, number: int, log: Log) -> bool:
        """Return whether the connection of an exchange later appends to a partition."""
        connection = self._plan._spool.connection
        later = (each for each in self._causes.logs.writers(log) if each > number)
        return any(connection(each) == connection(number) for each in later)

    def _number(self) -> Int64s:
        """
        Order the exchanges by the times of their requests, and find their dependencies.

        Returns:
            For each exchange its step.
        """
        plan, spool = self._plan, self._plan._spool
        order = np.argsort(np.frombuffer(spool.columns["request_time_ns"], np.int64), kind="stable")
        sent = array("q", order.tobytes())
        steps = np.argsort(order)
        plan._reasons = {
            int(steps[number]): self._reasons[number]
            for number in sorted(self._reasons, key=steps.__getitem__)
        }
        plan.left_out.update(plan._reasons.values())
        for step in plan._reasons:
            sent[step] = NONE
        for after in self._causes.after(sent, spool, self._name):
            plan.causes.extend(after)
            plan.cause_ends.append(len(plan.causes))
        plan.groups = self._causes.groups(sent)
        captured = map(int, order)
        found = overlaps(self._causes, spool, self._name)
        plan.overlaps = {int(steps[number]): each for number, each in found.items()}
        plan.lacking = lacking(captured, self._changes, self._reasons, self._causes, self._name)
        spool.sort(order)
        plan.assignments = {key: int(steps[number]) for key, number in self._assignments.items()}
        for step, connection in enumerate(spool.columns["connection"]):
            plan._by_connection.setdefault(connection, array("i")).append(step)
        for step in plan._reasons:
            spool.columns["shape"][step] = NONE
        return steps

    def _note_holes(self, steps: Int64s) -> None:
        """Note the holes in producers' sequences; steps after a hole take the slow path."""
        plan = self._plan
        plan.holes, behind = self._holes.found(steps.tolist(), self._name)
        for step in behind:
            plan._spool.columns["shape"][step] = NONE

    def _connect(self) -> None:
        """Note the completeness of each connection."""
        assert self._capture.reading is not None
        for known in completeness(self._capture.reading):
            at = known.connection
            if at in self._plan._by_connection or self._counts[at, "orphan"]:
                self._plan.connections[at] = replace(
                    known,
                    requests=self._counts[at, "request"],
                    unanswered=self._counts[at, "unanswered"],
                    orphans=self._counts[at, "orphan"],
                )

    def _name(self, topic_id: UUID) -> str | None:
        return self._plan.topic_ids.get(topic_id) if topic_id != NO_ID else None


def _captured(exchange: Exchange, request: Message) -> CapturedExchange:
    response = exchange.response
    assert exchange.request_time_ns is not None
    return CapturedExchange(
        connection=exchange.connection,
        client=exchange.client,
        broker=exchange.broker,
        api_key=NONE if exchange.api_key is None else exchange.api_key,
        api_version=NONE if exchange.api_version is None else exchange.api_version,
        correlation_id=exchange.correlation_id or 0,
        client_id=exchange.client_id,
        request=request.frame,
        response=response.frame if response is not None else None,
        expects_response=exchange.status != "no_response",
        request_time_ns=exchange.request_time_ns,
        response_time_ns=exchange.response_time_ns if response is not None else None,
    )


def _software(request: Message) -> str:
    """Return a client's software name and version, from ApiVersions v3 on (KIP-511), or nothing."""
    body = request.body if request.api == "ApiVersions" else None
    if body is None or not body.get("client_software_name"):
        return ""
    told = f"{body.client_software_name} {body.client_software_version}".strip()
    return told[:_LONGEST_SOFTWARE]


def _plain(table: Exchanges) -> list[bool]:
    """Return which exchanges may take the fast path: Produce, complete and answered."""
    asked, told = table.request, table.response
    is_plain = (table.status == ANSWERED) & (table.api_key == PRODUCE) & ~table.token
    is_whole = (asked.captured_bytes == asked.size) & (told.captured_bytes == told.size)
    found: list[bool] = (is_plain & is_whole).tolist()
    return found
