"""Plan builder: makes a replay plan of a capture."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from uuid import UUID

import numpy as np

from cluster.fields.kafka_enums import INTERNAL_TOPICS
from dissector.capture.columns import Int64s
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.stored_exchanges import NONE
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.reading.tls_report import unreadable_tls
from dissector.engine.tables.exchange_table import ANSWERED, Exchanges
from dissector.filter import Filter
from dissector.protocol.broker_requests import is_between_brokers
from dissector.protocol.context import using
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message
from dissector.protocol.undeclared_nulls import has_undeclared_null
from replay.order.concurrent_changes import overlaps
from replay.order.dependencies import Dependencies
from replay.order.exclusion_policy import (
    SENT_BY_BROKERS,
    UNDECLARED_NULL,
    is_handshake,
    provided_prerequisites,
    why_left_out,
    why_not_ready,
    why_partition_was_new,
)
from replay.order.read_write_sets import (
    Log,
    ReadWriteSets,
    ShapeReadWriteSets,
    read_write_sets_of,
)
from replay.order.service_order import service_order
from replay.plan.capture_part import CapturePart
from replay.plan.completeness import completeness
from replay.plan.missing_prerequisites import find_missing_prerequisites
from replay.plan.part_split import Accesses, dependent_connections, split_connections
from replay.plan.plain_fetches import PLAIN_FETCH, FetchReader, PlainFetch
from replay.plan.planned_steps import PlannedSteps
from replay.plan.request_shapes import ShapeIndex, producer_at
from replay.plan.script_rewrites import ScriptRewrites, place_of
from replay.plan.sequence_gaps import SequenceFinder, produced_batches
from replay.plan.session_starts import SESSION_BEFORE_CAPTURE, CapturedSessions
from replay.plan.shown_cluster import ShownCluster, software_of
from replay.plan.taken_rows import TakenRows

TO_CONTROLLER = "goes to a controller, which is no broker of the target"

_ShapeSets = tuple[str | None, ShapeReadWriteSets, list[tuple[Log, bool]]]
"""Client id, read and write sets; the logs of the batches, and whether they were accepted."""


class PlanBuilder:
    """Makes a plan in one pass over a capture, and one over the data collected in it."""

    def __init__(
        self,
        plan: PlannedSteps,
        capture: Capture,
        display_filter: Filter | None,
        allow: frozenset[str],
        part: CapturePart | None = None,
        rewrites: ScriptRewrites | None = None,
    ) -> None:
        self._plan = plan
        self._part = part
        self._rewrites = rewrites
        self._capture = capture
        self._filter = display_filter
        self._allow = allow
        self._dependencies = Dependencies()
        self._exclusions: dict[int, str] = {}
        self._refused_as_new: dict[int, tuple[str, list[Log]]] = {}
        self._prerequisites: dict[int, frozenset[str]] = {}
        self._sent_by_brokers: dict[int, set[bool]] = {}
        self._cluster = ShownCluster(plan)
        self._shape_sets: dict[int, _ShapeSets] = {}
        self._sequences = SequenceFinder()
        self._sessions = CapturedSessions()
        self._shapes = ShapeIndex()
        self._fetches = FetchReader()
        self._fetch_sets: dict[bytes, ShapeReadWriteSets] = {}
        self._assignments: dict[tuple[str, int], int] = {}
        self._counts: Counter[tuple[int, str]] = Counter()

    def build(self) -> None:
        """Read the capture and fill the plan."""
        plan, capture = self._plan, self._capture
        for window in capture.windows():
            plan.problems += [f"{name}: {problem}" for name, problem in window.problems]
            if self._rewrites:
                with using(capture.options.schemas):
                    window = self._rewrites.rewritten(window)
            assert capture.reading is not None
            rows = TakenRows(window.exchanges, plan.spill, capture.reading)
            for row, exchange in self._slow_path_exchanges(window, rows):
                self._record(rows, row, exchange)
            rows.store()
        assert capture.reading is not None
        plan.places_text = capture.reading.source.places_text
        plan.shapes = self._shapes.shapes
        self._exclude_by_capture()
        steps = self._order_steps()
        if self._part is not None:
            self._choose_part(self._part, steps)
        self._record_completeness()
        plan.sent_again = self._sequences.sent_again(steps, plan._exclusions)
        self._take_slow_path(plan.sent_again)
        if plan.is_partial:
            plan.holes, after = self._sequences.find(steps.tolist(), self._topic_name)
            self._take_slow_path(after)
        for topic, count in self._dependencies.partitions.items():
            title = self._topic_name(topic) if isinstance(topic, UUID) else topic
            if title and title not in INTERNAL_TOPICS:
                plan.topics[title] = max(plan.topics.get(title, 1), count)
        plan.created = frozenset(self._dependencies.auto_created & plan.topics.keys())
        lives, created = self._dependencies.lives, self._dependencies.creations
        plan.topic_ids = lives.newest_first(plan.topic_ids)
        own = lives.created_first(created, self._exclusions)
        plan.given_topics = frozenset(plan.topics.keys() - self._dependencies.auto_created - own)
        plan.absent_topics = frozenset(plan.topics.keys() & own)

    def _slow_path_exchanges(
        self, window: Window, rows: TakenRows
    ) -> Iterator[tuple[int, Exchange]]:
        """Yield the rows of a window that need the slow path; record the others."""
        capture, table, reading = self._capture, window.exchanges, self._capture.reading
        assert reading is not None
        if self._filter is not None:
            yield from enumerate(capture.exchanges_of(window))
            return
        with using(capture.options.schemas):
            fetches = self._fetches.read(table)
        left_out = self._rewrites.left_out if self._rewrites else ()
        for row, may_be_alike in enumerate(_may_take_fast_path(table)):
            if left_out and place_of(table, row) in left_out:
                yield row, reading.exchange(table, row, capture.names)
                continue
            if row in fetches and self._record_fetch(rows, row, fetches[row]):
                continue
            if not may_be_alike or not self._record_by_shape(rows, row):
                yield row, reading.exchange(table, row, capture.names)

    def _record(self, rows: TakenRows, row: int, exchange: Exchange) -> None:
        request = exchange.request
        connection = exchange.connection
        if request is None:
            self._plan.orphans += 1
            self._counts[connection, "orphan"] += 1
            return
        # Filtered exchanges show names of topic ids, and deletions, as well.
        names = {key: name for facts in exchange.facts for key, name in facts.names.items()}
        self._plan.topic_ids.update(names)
        lives, number = self._dependencies.lives, rows.next_number
        if lives.record(number, request, exchange.response, names):
            self._shapes.begin_anew()
            self._fetches.begin_anew()
        is_readable = not any(map(has_undeclared_null, exchange.messages))
        if is_readable:
            self._cluster.record(exchange, self._topic_name)
        if software := software_of(request):
            self._plan.clients[connection] = software
        if not is_handshake(request):
            self._sent_by_brokers.setdefault(connection, set()).add(is_between_brokers(request))
        if self._filter is not None and not self._filter.matches(exchange):
            self._plan.filtered += 1
            return
        self._counts[connection, "request"] += 1
        self._counts[connection, exchange.status] += 1
        if not is_readable:
            number = rows.add(row, request.client_id)
            self._exclusions[number] = UNDECLARED_NULL
            self._dependencies.add(ReadWriteSets())
            return
        shape = self._shapes.add(connection, request, exchange.response)
        places = list(produced_batches(request, exchange.response))
        number = rows.add(row, request.client_id, shape)
        places = [(lives.log(log), is_kept, of) for log, is_kept, of in places]
        self._sequences.record(number, places)
        reason = self._why_rewritten_away(exchange) or why_left_out(request, self._allow)
        reason = reason or why_not_ready(request.api or "", exchange.response, exchange.is_logged)
        if reason:
            self._exclusions[number] = reason
        if changed := provided_prerequisites(request, exchange.response):
            self._prerequisites[number] = changed
        self._sessions.record(number, exchange, request)
        self._record_assignment(number, request)
        found = read_write_sets_of(request, exchange.response)
        self._record_refused_as_new(number, exchange, found)
        self._record_group_topics(found)
        self._dependencies.add(found)
        if shape != NONE:
            logs = [place[:2] for place in places]
            self._shape_sets[shape] = request.client_id, self._dependencies.shape_sets(found), logs

    def _why_rewritten_away(self, exchange: Exchange) -> str:
        """Return why a hook leaves a request out; empty if none does."""
        place = exchange.connection, exchange.request_packet, exchange.correlation_id
        return self._rewrites.left_out.get(place, "") if self._rewrites else ""

    def _record_by_shape(self, rows: TakenRows, row: int) -> bool:
        """Record an exchange of known shape without decoding; False if it needs the slow path."""
        request, response = rows.frames(row)
        match = self._shapes.find(rows.connection(row), request, response)
        if match is None:
            return False
        shape, batches, offsets = match
        client_id, model, logs = self._shape_sets[shape]
        producers = [producer_at(request, begin) for begin in batches]
        batches_of = ((*log, each) for log, each in zip(logs, producers, strict=True))
        self._sequences.record(self._add_answered(rows, row, client_id, shape), batches_of)
        self._dependencies.add_by_shape(model, offsets, {producer[0] for producer in producers})
        return True

    def _record_fetch(self, rows: TakenRows, row: int, fetch: PlainFetch) -> bool:
        """Record a plain Fetch without decoding; False if it needs the slow path."""
        client_id = rows.client_id(row)
        if client_id is not None and not client_id.isascii():
            return False
        name = None if client_id is None else client_id.decode()
        number = self._add_answered(rows, row, name, PLAIN_FETCH)
        if fetch.session is not None:
            session = fetch.session, fetch.given_session
            self._sessions.record_fetch(number, rows.broker(row), *session)
        model = self._fetch_sets.get(fetch.places)
        if model is None:
            sets = self._fetches.read_write_sets(fetch)
            model = self._fetch_sets[fetch.places] = self._dependencies.shape_sets(sets)
        reads = self._fetches.reads(fetch, self._dependencies.log_number)
        self._dependencies.add_by_shape(model, reads=reads)
        return True

    def _add_answered(self, rows: TakenRows, row: int, client_id: str | None, shape: int) -> int:
        """Count and take up the answered request of a client; return its number."""
        connection = rows.connection(row)
        self._counts[connection, "request"] += 1
        self._sent_by_brokers.setdefault(connection, set()).add(False)
        return rows.add(row, client_id, shape)

    def _record_refused_as_new(self, number: int, exchange: Exchange, sets: ReadWriteSets) -> None:
        """Record a Produce request that was refused because its partition was new."""
        if why := why_partition_was_new(exchange.api or "", exchange.response):
            partitions = [resource[1:] for resource in sets.writes if resource[0] == "partition"]
            logs = [self._dependencies.lives.log((topic, at)) for topic, at in partitions]
            self._refused_as_new[number] = why, logs

    def _record_assignment(self, number: int, request: Message) -> None:
        """Record the SyncGroup request with the leader's assignment."""
        body = request.body
        if body is not None and request.api == "SyncGroup" and body.assignments:
            self._assignments[body.group_id, body.generation_id] = number

    def _record_group_topics(self, sets: ReadWriteSets) -> None:
        """Record the topics with offsets that each group commits or fetches."""
        named = [resource[:2] for resource in sets.reads | sets.writes if len(resource) > 1]
        topics = {name for kind, name in named if kind == "topic" and isinstance(name, str)}
        for group in (name for kind, name in named if kind == "group"):
            if topics:
                self._plan.group_topics.setdefault(group, set()).update(topics)

    def _exclude_by_capture(self) -> None:
        """Leave out requests for reasons that only the whole capture shows."""
        spool = self._plan.spill
        for number in range(len(spool)):
            connection = spool.connection(number)
            if self._sent_by_brokers.get(connection) == {True}:
                self._exclusions.setdefault(number, SENT_BY_BROKERS)
            elif spool.endpoints[connection][1] in self._cluster.controllers:
                self._exclusions.setdefault(number, TO_CONTROLLER)
        for number, (why, logs) in self._refused_as_new.items():
            if all(self._is_written_later(number, log) for log in logs):
                self._exclusions.setdefault(number, why)
        for number in self._sessions.started_before_capture():
            self._exclusions.setdefault(number, SESSION_BEFORE_CAPTURE)

    def _is_written_later(self, number: int, log: Log) -> bool:
        """Return whether the connection of an exchange later appends to a partition."""
        connection = self._plan.spill.connection
        later = (each for each in self._dependencies.logs.writers(log) if each > number)
        return any(connection(each) == connection(number) for each in later)

    def _order_steps(self) -> Int64s:
        """
        Order the exchanges as brokers served their requests, and find their dependencies.

        Returns:
            For each exchange its step.
        """
        plan, spool = self._plan, self._plan.spill
        order = service_order(*spool.times(), self._dependencies.served(self._topic_name))
        sent = array("q", order.tobytes())
        steps = np.argsort(order)
        plan._exclusions = {
            int(steps[number]): self._exclusions[number]
            for number in sorted(self._exclusions, key=steps.__getitem__)
        }
        plan.left_out.update(plan._exclusions.values())
        for step in plan._exclusions:
            sent[step] = NONE
        for after in self._dependencies.of_steps(sent, spool, self._topic_name):
            plan.causes.extend(after)
            plan.cause_ends.append(len(plan.causes))
        plan.groups = self._dependencies.group_history(sent)
        captured = map(int, order)
        found = overlaps(self._dependencies, spool, self._topic_name)
        plan.overlaps = {int(steps[number]): each for number, each in found.items()}
        plan.missing_prerequisites = find_missing_prerequisites(
            captured, self._prerequisites, self._exclusions, self._dependencies, self._topic_name
        )
        spool.sort(order)
        plan.assignments = {key: int(steps[number]) for key, number in self._assignments.items()}
        plan.ended_lives = self._dependencies.lives.ended_by_step(steps, self._exclusions)
        for step, connection in enumerate(spool.columns["connection"]):
            plan._by_connection.setdefault(connection, array("i")).append(step)
        for step in plan._exclusions:
            spool.columns["shape"][step] = NONE
        return steps

    def _choose_part(self, part: CapturePart, steps: Int64s) -> None:
        """
        Leave the connections of other parts to other processes.

        Args:
            part: The part.
            steps: For each exchange its step.
        """
        plan = self._plan
        (connections,) = plan.columns("connection")
        is_sent = np.ones(len(connections), bool)
        is_sent[list(plan._exclusions)] = False
        arguments = connections[steps], is_sent[steps], self._topic_name
        accesses = Accesses(self._dependencies, *arguments)
        sizes = {each: len(numbers) for each, numbers in plan._by_connection.items()}
        dependent = dependent_connections(connections, plan.causes, plan.cause_ends)
        part_of = split_connections(sizes, accesses.united(), dependent, part.parts)
        others = [each for each, number in part_of.items() if number != part.number - 1]
        plan.choose_part(part, part_of, accesses.written_by(np.array(others, np.int64)))

    @property
    def _is_first_part(self) -> bool:
        """Whether connections without requests belong to the part."""
        return self._part is None or self._part.number == 1

    def _take_slow_path(self, steps: Iterable[int]) -> None:
        """Send steps one by one, as their responses may differ from those of others alike."""
        for step in steps:
            self._plan.spill.columns["shape"][step] = NONE

    def _record_completeness(self) -> None:
        """Record the completeness of each connection."""
        assert self._capture.reading is not None
        self._plan.unreadable = unreadable_tls(self._capture.reading)
        for each in completeness(self._capture.reading):
            at = each.connection
            has_steps, is_first = bool(self._counts[at, "request"]), self._is_first_part
            if at in self._plan._by_connection or (
                self._counts[at, "orphan"] and is_first and not has_steps
            ):
                self._plan.connections[at] = replace(
                    each,
                    requests=self._counts[at, "request"],
                    unanswered=self._counts[at, "unanswered"],
                    orphans=self._counts[at, "orphan"],
                )

    def _topic_name(self, topic_id: UUID) -> str | None:
        return self._plan.topic_ids.get(topic_id) if topic_id != NO_ID else None


def _may_take_fast_path(table: Exchanges) -> list[bool]:
    """Return which exchanges may take the fast path: Produce, complete and answered."""
    requests, responses = table.request, table.response
    is_produce = (table.status == ANSWERED) & (table.api_key == PRODUCE) & ~table.token
    is_complete = requests.captured_bytes == requests.size
    is_complete &= responses.captured_bytes == responses.size
    fast: list[bool] = (is_produce & is_complete).tolist()
    return fast
