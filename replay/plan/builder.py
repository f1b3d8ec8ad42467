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
from dissector.engine.exchanges.stored_exchanges import NONE
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.reading.tls_report import unreadable_tls
from dissector.engine.tables.exchange_table import ANSWERED, Exchanges
from dissector.filter import Filter
from dissector.protocol.context import using
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message
from replay.order.concurrent_changes import overlaps
from replay.order.dependencies import Dependencies
from replay.order.exclusion_policy import (
    SENT_BY_BROKERS,
    UNDECLARED_NULL,
)
from replay.order.read_write_sets import (
    Log,
    ReadWriteSets,
    ShapeReadWriteSets,
)
from replay.order.service_order import service_order
from replay.plan.capture_part import CapturePart
from replay.plan.completeness import completeness
from replay.plan.missing_prerequisites import find_missing_prerequisites
from replay.plan.part_split import Accesses, dependent_connections, split_connections
from replay.plan.plain_fetches import PLAIN_FETCH, FetchReader, PlainFetch
from replay.plan.planned_steps import PlannedSteps
from replay.plan.read_exchange import ReadExchange, ReadExchanges
from replay.plan.request_shapes import ShapeIndex, producer_at
from replay.plan.script_rewrites import ScriptRewrites, place_of
from replay.plan.sequence_gaps import SequenceFinder
from replay.plan.session_starts import SESSION_BEFORE_CAPTURE, CapturedSessions
from replay.plan.shown_cluster import ShownCluster
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
        self._known = ReadExchanges(capture.names, allow)
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
            if self._filter is None:
                self._record_window(window, rows)
            else:
                self._record_filtered(window, rows, self._filter)
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

    def _record_filtered(self, window: Window, rows: TakenRows, chosen: Filter) -> None:
        """Record the exchanges of a window that a filter chooses, and what others show."""
        for row, exchange in enumerate(self._capture.exchanges_of(window)):
            request = exchange.request
            if request is None:
                self._record_orphan(rows, row)
                continue
            read = ReadExchange(exchange, request, self._allow)
            self._record_shown(rows, row, read)
            if chosen.matches(exchange):
                self._record(rows, row, read)
            else:
                self._plan.filtered += 1

    def _record_window(self, window: Window, rows: TakenRows) -> None:
        """Record the exchanges of a window, decoding those that need it."""
        table = window.exchanges
        with using(self._capture.options.schemas):
            fetches = self._fetches.read(table)
        left_out = self._rewrites.left_out if self._rewrites else ()
        for row, (is_whole, is_produce) in enumerate(_may_be_alike(table)):
            is_known = is_whole and not (left_out and place_of(table, row) in left_out)
            if is_known and row in fetches and self._record_fetch(rows, row, fetches[row]):
                continue
            if is_known and is_produce and self._record_by_shape(rows, row):
                continue
            read = self._known.read(rows, row, is_known)
            if read is None:
                self._record_orphan(rows, row)
            else:
                self._record_shown(rows, row, read)
                self._record(rows, row, read)

    def _record_orphan(self, rows: TakenRows, row: int) -> None:
        self._plan.orphans += 1
        self._counts[rows.connection(row), "orphan"] += 1

    def _record_shown(self, rows: TakenRows, row: int, read: ReadExchange) -> None:
        """Record what an exchange shows, even if the filter does not choose it."""
        connection = rows.connection(row)
        # Filtered exchanges show names of topic ids, and deletions, as well.
        self._plan.topic_ids.update(read.names)
        number = rows.next_number
        if self._dependencies.lives.record(number, read.request, read.response, read.names):
            self._shapes.begin_anew()
            self._fetches.begin_anew()
        if read.is_readable and read.response is not None:
            messages = read.request, read.response
            self._cluster.record(rows.broker(row), *messages, self._topic_name)
        if read.software:
            self._plan.clients[connection] = read.software
        if read.is_between_brokers is not None:
            self._sent_by_brokers.setdefault(connection, set()).add(read.is_between_brokers)

    def _record(self, rows: TakenRows, row: int, read: ReadExchange) -> None:
        """Record an exchange that takes part."""
        connection, request, response = rows.connection(row), read.request, read.response
        self._counts[connection, "request"] += 1
        self._counts[connection, read.status] += 1
        if not read.is_readable:
            number = rows.add(row, request.client_id)
            self._exclusions[number] = UNDECLARED_NULL
            self._dependencies.add(ReadWriteSets())
            return
        shape = NONE
        if read.shape is not None and response is not None:
            shape = self._shapes.add(connection, read.shape, len(response.frame))
        lives = self._dependencies.lives
        number = rows.add(row, request.client_id, shape)
        places = [(lives.log(log), is_kept, of) for log, is_kept, of in read.batches]
        self._sequences.record(number, places)
        if reason := self._why_rewritten_away(rows, row) or read.why_left_out:
            self._exclusions[number] = reason
        if read.changed:
            self._prerequisites[number] = read.changed
        self._sessions.record(number, rows.broker(row), request, response)
        self._record_assignment(number, request)
        found = read.sets
        self._record_refused_as_new(number, read.why_partition_was_new, found)
        self._record_group_topics(found)
        self._dependencies.add(found)
        if shape != NONE:
            logs = [place[:2] for place in places]
            self._shape_sets[shape] = request.client_id, self._dependencies.shape_sets(found), logs

    def _why_rewritten_away(self, rows: TakenRows, row: int) -> str:
        """Return why a hook leaves a request out; empty if none does."""
        left_out = self._rewrites.left_out if self._rewrites else {}
        return left_out.get(place_of(rows.table, row), "") if left_out else ""

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
        shape = NONE if fetch.ended_producers else PLAIN_FETCH
        number = self._add_answered(rows, row, name, shape)
        if fetch.session is not None:
            session = fetch.session, fetch.given_session
            self._sessions.record_fetch(number, rows.broker(row), *session)
        model = self._fetch_sets.get(fetch.places)
        if model is None:
            sets = self._fetches.read_write_sets(fetch)
            model = self._fetch_sets[fetch.places] = self._dependencies.shape_sets(sets)
        reads = self._fetches.reads(fetch, self._dependencies.log_number)
        self._dependencies.add_by_shape(model, reads=reads, ended_producers=fetch.ended_producers)
        return True

    def _add_answered(self, rows: TakenRows, row: int, client_id: str | None, shape: int) -> int:
        """Count and take up the answered request of a client; return its number."""
        connection = rows.connection(row)
        self._counts[connection, "request"] += 1
        self._sent_by_brokers.setdefault(connection, set()).add(False)
        return rows.add(row, client_id, shape)

    def _record_refused_as_new(self, number: int, why: str, sets: ReadWriteSets) -> None:
        """Record a Produce request that was refused because its partition was new."""
        if why:
            partitions = [resource[1:] for resource in sets.writes if resource[0] == "partition"]
            logs = [self._dependencies.lives.log((topic, at)) for topic, at in partitions]
            self._refused_as_new[number] = why, logs

    def _record_assignment(self, number: int, request: Message) -> None:
        """Record the SyncGroup request with the leader's assignment."""
        body = request.body
        if body is not None and request.api == "SyncGroup" and body.assignments:
            self._assignments[body.group_id, body.generation_id] = number

    def _record_group_topics(self, sets: ReadWriteSets) -> None:
        """Record the topics whose offsets or records each group commits or fetches."""
        named = [resource[:2] for resource in sets.reads | sets.writes if len(resource) > 1]
        topics = {name for kind, name in named if kind in ("topic", "partition")}
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


def _may_be_alike(table: Exchanges) -> Iterator[tuple[bool, bool]]:
    """Yield of each exchange whether it is complete and answered, and whether it is a Produce."""
    requests, responses = table.request, table.response
    is_whole = (table.status == ANSWERED) & ~table.token
    is_whole &= requests.captured_bytes == requests.size
    is_whole &= responses.captured_bytes == responses.size
    yield from zip(is_whole.tolist(), (table.api_key == PRODUCE).tolist(), strict=True)
