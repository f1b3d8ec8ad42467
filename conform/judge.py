"""
Applies rules to a capture, window by window, and collects the verdict.

The state of a connection is dropped when the connection ends, and the state of the capture is
bounded, so memory does not grow with the capture. A rule that reaches its budget of time or memory
is not judged any further (`conform.rule_budgets`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import perf_counter_ns

import numpy as np

from conform.evidence.batch_observation import BatchObservation, DecodedRecords
from conform.evidence.batch_summaries import BatchSummaries
from conform.evidence.bounded_memory import BudgetReached
from conform.evidence.client_software import record_client_software
from conform.evidence.fetch_history import keeps_session
from conform.evidence.observation import (
    CaptureState,
    ConnectionObservation,
    ConnectionState,
    Observation,
)
from conform.evidence.reporter import CurrentObservation, observation_text
from conform.registry.rule import FastCheck, Rule
from conform.registry.verdict import Tally, Verdict
from conform.rule_budgets import RuleBudget, RuleBudgets
from conform.rule_plans import PLAIN, RuleGroup, RulePlans, tests_of
from conform.screens.connection_columns import screened_rows
from conform.screens.plain_batches import PlainBatches
from conform.screens.row_numbers import row_numbers
from conform.screens.window_results import WindowResults
from conform.screens.window_screens import NOTHING, WindowScreens
from conform.screens.window_sessions import WindowSessions
from dissector.capture.columns import unique
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_facts import read_topic_names
from dissector.engine.reading.capture import Capture, Reading, Window
from dissector.engine.reading.notices import reading_notices
from dissector.engine.reading.spoken import speaks_http
from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.protocol.headers import PRODUCE
from dissector.query.contents.captured_schemas import (
    learn_schemas,
    read_schemas,
    registry_exchanges,
)
from dissector.query.contents.decoded_values import RecordValues
from dissector.values.value_settings import ValueSettings

API_VERSIONS = 18

_VALUE_FAMILY = "D"


class Judge:
    """
    Applies rules to a capture.

    Args:
        rules: The rules.
        budget: The budget of each rule.
        passes: Chooses the exchanges whose violations are reported; None: all. The others are
            evidence as well.

    Attributes:
        verdict: The verdict so far.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        budget: RuleBudget = RuleBudget(),  # noqa: B008 (frozen)
        passes: Callable[[Exchange], bool] | None = None,
    ) -> None:
        chosen = sorted(rules, key=lambda rule: rule.order)
        self.verdict = Verdict(chosen)
        self._budgets = RuleBudgets(budget)
        self._current = CurrentObservation(passes)
        self._screens = WindowScreens(tests_of(chosen))
        self._plans = RulePlans(self.verdict, self._current, self._screens)
        self._exhausted: dict[type, str] = {}
        self._rests = {rest.state: bit for rest, bit in self._screens.rests.items()}
        self._capture_state = CaptureState(self._exhausted, self._rests)
        # Number of exchanges that no rule examines, by API and reason; there may be many.
        self._uncertain: Counter[tuple[int | None, str]] = Counter()
        self._connections: dict[int, ConnectionState] = {}
        self._ended_numbers: set[int] = set()
        self._places_text: Callable[[Iterable[int]], str] | None = None
        self._decodes_values = any(rule.id.startswith(_VALUE_FAMILY) for rule in chosen)
        self._values: RecordValues | None = None
        self._has_met_http, self._seen_connections = False, 0

    def judge_capture(self, capture: Capture) -> Verdict:
        """Judge a whole capture."""
        capture.read_in_step()  # what is known of a connection is asked for at each window
        for window in capture.windows():
            self.judge_window(capture, window)
        return self.finish(capture.reading)

    def judge_window(self, capture: Capture, window: Window) -> None:
        """Judge the exchanges that ended in one window of a capture."""
        reading, table = capture.reading, window.exchanges
        assert reading is not None
        self.verdict.captures = capture.paths
        self._places_text = reading.source.places_text
        self.verdict.problems += [f"{name}: {problem}" for name, problem in window.problems]
        for number in self._connection_numbers(window):
            self._record_losses(reading, number)
        self._record_repeated_ids(table)
        self._budgets.add_messages(_byte_count(table))
        capture.names.learn(read_topic_names(table))
        if self._decodes_values:
            self._learn_schemas(capture, window)
        summaries = BatchSummaries(table)
        batches = PlainBatches(table, summaries, self._screens.bits)
        is_logged = reading.packet_columns().logs.is_logged(table)
        rows = screened_rows(table, self._connections, self._capture_state, batches, is_logged)
        screened = self._screens.apply(rows, batches.fields)
        self._plans.begin_window(screened, batches)
        is_canonical = np.array(screened.passed) != NOTHING
        results = WindowResults(screened.partitions, is_canonical, summaries)
        sessions = WindowSessions(screened.partitions, is_canonical)
        decodes_values = self._capture_state.values is not None
        columns = row_numbers(table)
        for row, exchange in enumerate(self._exchanges(capture, reading, table)):
            connection = self._connections[exchange.connection]
            self._current.note(exchange)
            self._current.passed = screened.passed[row]
            passed = screened.passed[row] & connection.at_rest & self._capture_state.at_rest
            observation = Observation(
                exchange,
                columns[row],
                connection,
                self._capture_state,
                summaries.reader(row),
                is_canonical=screened.passed[row] != NOTHING,
                results=results.of(row),
                fetch=sessions.of(row),
                single=screened.single[row],
            )
            is_plain = passed & batches.needed[row] == batches.needed[row] and not decodes_values
            is_plain &= not batches.faults[row] or observation.results is not None
            plain = PLAIN | batches.faults[row] if is_plain else NOTHING
            self._judge(observation, row, passed, plain)
        self._plans.count()
        self._drop_exhausted_states()
        for number in [n for n in self._connections if reading.streams.connections[n].ended]:
            self._close(self._connections.pop(number), reading.streams.connections[number].ended)
            self._ended_numbers.add(number)

    def finish(self, reading: Reading | None = None) -> Verdict:
        """End the capture that was read, and all open connections; return the verdict."""
        if reading is not None:
            self.verdict.not_read = list(reading_notices(reading))
        for connection in self._connections.values():
            self._close(connection, "")
        self._connections.clear()
        for (key, reason), count in self._uncertain.items():
            for group in self._plans.of("exchange", key).groups:
                for _, reporter, _ in group.members:
                    reporter.count_unjudged(reason, count)
        self._uncertain.clear()
        if self._places_text is not None:
            self.verdict.name_places(self._places_text)
        return self.verdict

    def _learn_schemas(self, capture: Capture, window: Window) -> None:
        """Take the schemas of a window; values are decoded once any is known."""
        settings = capture.options.values or ValueSettings()
        if settings.is_off:
            return
        reads_again = self._meets_http(capture)
        if self._values is None:
            judges = settings.is_asked and PRODUCE in window.exchanges.api_key
            if not judges and not reads_again and not len(registry_exchanges(capture, window)):
                return  # sources of schemas are not read in vain
            self._values = RecordValues(capture, settings)
        store = self._values.reader.store
        if reads_again:
            read_schemas(capture, store)
        learn_schemas(capture, window, store)
        if len(store) or settings.is_asked:
            self._capture_state.values = self._values

    def _meets_http(self, capture: Capture) -> bool:
        """Return whether the first HTTP of a capture is met, perhaps that of a registry."""
        if self._has_met_http or capture.reading is None or not capture.names.is_rereadable:
            return False
        self._has_met_http = speaks_http(capture.reading, self._seen_connections)
        self._seen_connections = capture.reading.streams.connections.size
        return self._has_met_http

    def _connection_numbers(self, window: Window) -> list[int]:
        return sorted(set(window.exchanges.connection.tolist()) | self._connections.keys())

    def _record_losses(self, reading: Reading, number: int) -> None:
        """Record the reason why a connection is incomplete; it stays incomplete."""
        connection = self._connections.get(number)
        if connection is None:
            state = reading.correlator.state_of(number)
            client = state.client if state and state.client is not None else 0
            connection = self._connections[number] = ConnectionState(
                number, *reading.client_and_broker(number, client), self._exhausted, self._rests
            )
            for rest in self._screens.rests:
                connection.set_rest(rest.state, rest.begins)
        if not connection.client.origin:
            (connection.client.origin,) = reading.correlator.origins([number])
        connection.gap_reason = connection.gap_reason or gap_reason(reading, number)
        if not connection.incomplete_reason:
            connection.incomplete_reason = begin_reason(reading, number) or connection.gap_reason
        if not connection.incomplete_reason and number in self._ended_numbers:
            connection.incomplete_reason = "the state of the connection before its end was dropped"
        if not connection.incomplete_reason:
            _record_skipped_bytes(reading, connection)
        self._capture_state.incomplete_reason = (
            self._capture_state.incomplete_reason or connection.incomplete_reason
        )

    def _record_repeated_ids(self, table: Exchanges) -> None:
        """Mark connections with repeated correlation ids, which are paired by order alone."""
        has_request = table.request.packet != NONE
        number, id_ = table.connection[has_request], table.correlation_id[has_request]
        order = np.lexsort((id_, number))
        number, id_ = number[order], id_[order]
        is_repeated = (number[1:] == number[:-1]) & (id_[1:] == id_[:-1])
        for repeating in unique(number[1:][is_repeated]).tolist():
            self._connections[repeating].repeats_correlation_ids = True

    def _exchanges(
        self, capture: Capture, reading: Reading, table: Exchanges
    ) -> Iterator[Exchange]:
        """Yield the rows of a window as objects, with the addresses of their connection."""
        packet = table.request.packet
        files = reading.files_of(np.where(packet == NONE, table.response.packet, packet))
        rows = zip(table.connection.tolist(), files.codes.tolist(), strict=True)
        packets = reading.packet_columns()
        for row, (number, code) in enumerate(rows):
            connection = self._connections[number]
            yield Exchange(
                table,
                row,
                capture=files.values[code],
                client=connection.client.address,
                broker=connection.broker.address,
                names=capture.names,
                origin=connection.client.origin,
                packets=packets,
                hooks=reading.options.hook_columns,
            )

    def _judge(self, observation: Observation, row: int, passed: int, plain: int) -> None:
        """Apply the rules to an exchange and its batches; record an exception as a fault."""
        try:
            self._judge_exchange(observation, row, passed, plain)
        except Exception as error:
            self.verdict.fault("", error, observation_text(observation))

    def _judge_exchange(self, observation: Observation, row: int, passed: int, plain: int) -> None:
        exchange, key = observation.exchange, observation.api_key
        if key == API_VERSIONS:
            with suppress(BudgetReached):
                record_client_software(observation)
        if reason := observation.connection.uncertain_pairing_reason(observation):
            self._uncertain[key, reason] += 1
            observation.connection.is_disordered |= exchange.status != "answered"
            return
        if observation.fetch is not None and passed & self._screens.in_session:
            passed &= self._kept_by_session(observation)
        plan = self._plans.of("exchange", key, passed, observation.connection.incomplete_reason)
        plan.rows.append(row)
        self._apply(plan.groups, observation)
        plan = self._plans.of("batch", key, plain)
        plan.rows.append(row)
        if plan.groups:
            for batch in _batches_of(observation, plan.needs_headers):
                self._apply(plan.groups, batch)
        observation.connection.record(observation)

    def _kept_by_session(self, observation: Observation) -> int:
        """Return the bits of the screens that a Fetch in a session passes by continuing it."""
        try:
            is_kept = keeps_session(observation)
        except BudgetReached:
            is_kept = False
        return -1 if is_kept else ~self._screens.in_session

    def _apply(self, groups: list[RuleGroup], observation: ConnectionObservation) -> None:
        """Apply rules to one observation, and measure the time of each."""
        self._current.observation = observation
        allowed_s, begin_ns = self._budgets.allowed_s, perf_counter_ns()
        for fast_check, members in groups:
            passed = None if fast_check is None else self._fast_check(fast_check, observation)
            if passed is not None:
                for _, _, tally in members:
                    tally.judged += passed
                continue
            for call, reporter, tally in members:
                try:
                    call(observation, reporter)
                except BudgetReached as error:
                    self._stop(tally, str(error))
                except Exception as error:
                    reporter.record_exception(error)
                end_ns = perf_counter_ns()
                tally.seconds = seconds = tally.seconds + (end_ns - begin_ns) / 1e9
                begin_ns = end_ns
                if seconds > allowed_s:
                    self._stop(tally, self._budgets.time_reason(tally))

    def _stop(self, tally: Tally, reason: str) -> None:
        """Judge a rule no further for a reason; an empty reason has no effect."""
        if reason and not tally.is_stopped:
            tally.is_stopped = True
            tally.unjudged[reason] += 1
            self._plans.drop_stopped()

    def _drop_exhausted_states(self) -> None:
        """Free the states that reached their budget; rules that need them are stopped."""
        states = [self._capture_state, *self._connections.values()]
        self._exhausted |= self._budgets.exhausted_states(states)
        for kind in self._exhausted:
            for each in states:
                each.drop(kind)

    def _fast_check(self, check: FastCheck, observation: ConnectionObservation) -> int | None:
        """Return the result of a fast check; None if it raised an exception."""
        try:
            return check(observation)
        except BudgetReached:
            return None
        except Exception as error:
            self.verdict.fault("", error, observation_text(observation))
            return None

    def _close(self, connection: ConnectionState, ended: str) -> None:
        connection.ended = ended
        observation = ConnectionObservation(connection, self._capture_state)
        self._apply(self._plans.of("close", None).groups, observation)


def _batches_of(observation: Observation, needs_headers: bool) -> Iterator[BatchObservation]:
    """Yield the batches of an exchange, which are not decoded if only headers are needed."""
    if needs_headers and observation.results is not None:
        for result in observation.results:
            for index in range(len(result.batches or ())):
                yield BatchObservation(observation, result, index)
        return
    for message, field in observation.record_fields:
        records = DecodedRecords(message, field)
        for index in range(len(field.batches)):
            yield BatchObservation(observation, records, index)


def _byte_count(table: Exchanges) -> int:
    """Return the captured bytes of all messages of a table."""
    sides = (table.request, table.response)
    return int(sum(np.maximum(side.captured_bytes, 0).sum() for side in sides))


def begin_reason(reading: Reading, number: int) -> str:
    """Return why a connection is missing from the start of the capture on; empty: it is not."""
    if reading.streams.connections.missing_sides(np.array([number]))[0] >= 0:
        return "the capture has one direction of the connection only"
    if not reading.streams.connections.has_both_syns(number):
        return "the capture begins in the middle of the connection"
    return ""


def gap_reason(reading: Reading, number: int) -> str:
    """Return why messages since the start of the capture are missing; empty: none is."""
    connection = reading.streams.connections[number]
    if any(side.gap_bytes or side.gaps for side in connection.sides):
        return "packets of the connection are missing"
    if any(side.cut_bytes for side in connection.sides):
        return "packets of the connection are truncated"
    return ""


def _record_skipped_bytes(reading: Reading, connection: ConnectionState) -> None:
    """Record the bytes outside frames, without headers of proxies, which are none of Kafka's."""
    state = reading.correlator.state_of(connection.number)
    if state is None:
        return
    a, b = (n - preface for n, preface in zip(state.skipped, state.prefaces, strict=True))
    if not (a or b):
        return
    connection.skipped_bytes = (a, b) if state.client != 1 else (b, a)
    connection.skips_before_frames = all(
        not count or count == entered
        for count, entered in zip(state.skipped, state.entered, strict=True)
    )
    connection.incomplete_reason = "bytes of the connection can't be decoded as Kafka"
    connection.gap_reason = connection.gap_reason or connection.incomplete_reason
