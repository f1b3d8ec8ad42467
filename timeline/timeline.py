"""
Reads events from a capture.

Windows of exchanges are passed to trackers. Control traffic (groups, transactions, logins,
metadata) is decoded into objects. Of Produce and Fetch, columns select the exchanges with an error,
with a throttle time, or without a response.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import unique
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.fact_columns import ExchangeSummaries
from dissector.engine.fields.field_predicates import matches_any_value
from dissector.engine.reading.capture import Capture, Reading, Window
from dissector.engine.tables.exchange_table import NONE, ORPHAN, UNANSWERED, Exchanges, Ints
from dissector.protocol.context import using
from timeline.connections.login_rounds import login_rows
from timeline.connections.slow_phases import slow_rows
from timeline.events.capture_progress import CaptureProgress
from timeline.events.closes import Close, Closes
from timeline.events.connect_attempts import ConnectAttempts
from timeline.events.connection_numbering import ConnectionNumbering
from timeline.events.event import KINDS, Event, event_without_secrets
from timeline.events.event_order import EventOrder
from timeline.events.fetch_counts import fetch_counts
from timeline.events.fetched_batches import fetched_batches
from timeline.events.followed_records import FollowedRecords
from timeline.events.observed_exchange import ObservedWindow
from timeline.events.plain_data import PlainData
from timeline.events.produce_counts import produce_counts
from timeline.events.reliable_bodies import ReliableBodies
from timeline.events.repeats import Repeats
from timeline.events.traffic_losses import TrafficLosses
from timeline.events.waits import Waits
from timeline.events.words import mask_of
from timeline.registry import trackers_of
from timeline.trackers.tracker import ObservedAt, Selection, Tracker

_STATE = (
    *("_trackers", "_losses", "_repeats", "_order", "_progress", "_numbering"),
    *("_closes", "_attempts"),
)


LIVE_NS = 10 * 10**9
"""Limit of the time for which events of a live capture wait for equal, or for earlier ones."""


class Timeline:
    """Events of one capture in time order."""

    def __init__(
        self,
        capture: Capture,
        kinds: Iterable[str] = KINDS,
        passes: Callable[[Exchange], bool] | None = None,
        *,
        show_secrets: bool = False,
        live: bool = False,
        records: str | None = None,
    ) -> None:
        """
        Start a timeline.

        Args:
            capture: The capture.
            kinds: Kinds of events to find.
            passes: Display filter; events without a passing exchange are dropped.
            show_secrets: Show texts with credentials, such as reasons with URLs, instead of masks.
            live: Yield events soon, though some may be out of order.
            records: A filter of records; those that pass have events of the kind `record`.

        Raises:
            FilterError: The filter of records does not parse.
        """
        capture.read_in_step()  # losses are those of all connections at each window
        self._capture = capture
        self._passes = passes
        self._bodies = ReliableBodies(capture.options.schemas)
        self._mask = mask_of(capture, show_secrets)
        self._kinds = tuple(kinds)
        self._records: FollowedRecords | None = None
        if records is not None:
            self._records = FollowedRecords(capture, records, show_secrets=show_secrets)
        self._trackers = trackers_of(self._kinds)
        self._losses = TrafficLosses()
        self._repeats = Repeats(LIVE_NS, LIVE_NS) if live else Repeats()
        self._order = EventOrder(LIVE_NS) if live else EventOrder()
        self._is_live = live
        self._progress = CaptureProgress()
        self._numbering = ConnectionNumbering()
        self._closes = Closes()
        self._attempts = ConnectAttempts(passes=passes is None)

    def events(self, windows: Iterable[Window]) -> Iterator[Event]:
        """Yield the events; `windows` are those of the capture, in order."""
        for window in windows:
            yield from self.advance(window)
            del window
        yield from self.finish()

    def advance(self, window: Window) -> Iterator[Event]:
        """Process the next window; yield completed events."""
        assert self._capture.reading is not None
        self._losses.update(self._capture.reading, window, self._numbering)
        self._observe(window)
        complete_ns = self._complete_ns(window)
        now_ns = self._progress.live_ns if self._is_live else self._progress.now_ns
        yield from self._released(self._order.ready(complete_ns, now_ns))

    def finish(self) -> Iterator[Event]:
        """Yield the remaining events at the end of the capture, and reset all state."""
        self._observe_attempts(at_end=True)
        for tracker in self._trackers:
            self._add(tracker.finish(self._progress.now_ns))
        self._order.add(self._repeats.finish())
        yield from self._released(self._order.drain())
        self._trackers, self._closes = trackers_of(self._kinds), Closes()

    def retain(self, reading: Reading, stay: Ints) -> None:
        """Prepare for a reading that will retain only some connections, in order."""
        count = len(reading.streams.connections)
        self._losses.retain(stay)
        self._attempts.retain(stay)
        self._numbering.retain(stay, count)

    @property
    def state(self) -> tuple[Any, ...]:
        """State between two windows, for pickling."""
        return tuple(getattr(self, name) for name in _STATE)

    @state.setter
    def state(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(_STATE, state, strict=True):
            setattr(self, name, value)

    def _observe(self, window: Window) -> None:
        """Pass the exchanges of a window to the trackers."""
        reading, table = self._capture.reading, window.exchanges
        assert reading is not None
        self._closes.begin(window.ends, self._numbering)
        if not len(table):
            for _, close in self._placed_ends(window, np.zeros(0, np.int64)):
                self._observe_close(close)
            self._observe_new_brokers()
            return
        summaries = self._capture.known_of(window)

        with using(self._capture.options.schemas):
            masks = self._masks(table, summaries)
            chosen = np.logical_or.reduce(
                [mask for _, mask in masks] or [np.zeros(len(table), bool)]
            )
            plain = PlainData(table, chosen & (summaries.errors == 0))
        observed_at = ObservedWindow(
            reading,
            table,
            self._capture.names,
            summaries,
            self._bodies,
            Waits(reading, table, self._ending, self._has_gap),
            plain,
            self._numbering.of,
            self._passes,
        ).at
        chosen |= table.status == ORPHAN
        rows = np.flatnonzero(chosen)
        if self._sees_closes:
            self._closes.follow(table, observed_at)
        closes = self._placed_ends(window, rows)
        self._observe_new_brokers()
        for at, row in enumerate(rows.tolist()):
            while closes and closes[0][0] <= at:
                self._observe_close(closes.popleft()[1])
            observed = observed_at(row)
            if observed.status == "orphan":
                self._losses.add_orphan(observed.connection, observed.broker, observed.end_ns)
                continue
            for tracker, mask in masks:
                if mask[row]:
                    self._add(tracker.observe(observed))
        for _, close in closes:
            self._observe_close(close)
        self._observe_records(table, summaries, observed_at)
        if self._records is not None:
            records = self._records.of(window)
            for tracker in self._trackers:
                self._add(tracker.observe_records(records, observed_at))

    def _ending(self, position: int, client_side: int) -> tuple[str, str, int]:
        return self._closes.ending(self._numbering.of(position), client_side)

    def _has_gap(self, position: int, since_ns: int, end_ns: int) -> bool:
        return self._losses.has_gap(self._numbering.of(position), since_ns, end_ns)

    def _add(self, events: Iterator[Event]) -> None:
        """Add events with a passing exchange; equal ones are joined."""
        self._order.add(self._repeats.add(event for event in events if event.passes))

    @property
    def _sees_closes(self) -> list[Tracker]:
        return [each for each in self._trackers if each.sees_closes]

    def _placed_ends(self, window: Window, rows: Ints) -> deque[tuple[int, Close]]:
        """
        Return the connections that ended in a window, and before which of some rows each is due.

        That is before the requests that were sent after the end, which it may explain, but behind
        all exchanges of the connection itself.
        """
        if not self._sees_closes:
            return deque()
        table, closes = window.exchanges, list(self._closes.ended(window.ends, self._numbering))
        sent_ns = np.maximum(table.request.time_ns, table.response.time_ns)[rows]
        has_request = table.request.time_ns[rows] != NONE
        sent_ns[has_request] = table.request.time_ns[rows][has_request]
        end_ns = np.array([close.time_ns for close in closes], np.int64)
        due = np.searchsorted(np.maximum.accumulate(sent_ns), end_ns, side="right")
        numbers = map(self._numbering.of, table.connection[rows].tolist() if closes else ())
        behind = {number: at + 1 for at, number in enumerate(numbers)}
        placed = [
            (max(at, behind.get(close.connection, 0)), close)
            for at, close in zip(due.tolist(), closes, strict=True)
        ]
        return deque(sorted(placed, key=lambda each: (each[0], each[1].time_ns)))

    def _observe_close(self, close: Close) -> None:
        """Pass the end of a connection to the trackers."""
        for tracker in self._sees_closes:
            self._add(tracker.observe_close(close))

    def _observe_new_brokers(self) -> None:
        """Find connection attempts to brokers that are known by now."""
        for broker in self._closes.new_brokers():
            self._attempts.add_broker(broker)
        self._observe_attempts()

    def _observe_attempts(self, *, at_end: bool = False) -> None:
        """Pass failed connection attempts to the trackers."""
        reading = self._capture.reading
        if reading is None or not self._sees_closes:
            return
        now_ns = self._progress.now_ns
        for attempt in self._attempts.failed(reading, self._numbering, now_ns, at_end=at_end):
            for tracker in self._sees_closes:
                self._add(tracker.observe_attempt(attempt))

    def _observe_records(
        self, table: Exchanges, summaries: ExchangeSummaries, observed_at: ObservedAt
    ) -> None:
        """Pass counts of Produce and Fetch, and transactional records, to the trackers."""
        for tracker in self._trackers:
            with using(self._capture.options.schemas):
                found = fetched_batches(table, tracker.wanted_producers())
                counts = fetch_counts(table, summaries.errors) if tracker.counts_fetches else []
            if tracker.follows_lags:
                name = self._capture.names.name
                with using(self._capture.options.schemas):
                    self._add(tracker.observe_offsets(table, name, observed_at))
            for row, producer_id, epoch in found:
                self._add(tracker.observe_fetched(observed_at(row), producer_id, epoch))
            for each in counts:
                self._add(tracker.observe_fetches(each, observed_at))
            if tracker.counts_produces:
                for produced in produce_counts(table):
                    self._add(tracker.observe_produces(produced, observed_at))

    def _masks(
        self, table: Exchanges, summaries: ExchangeSummaries
    ) -> list[tuple[Tracker, NDArray[np.bool_]]]:
        """Return the rows for each tracker."""
        unusual = (table.status == UNANSWERED) | (summaries.errors != 0)
        masks = []
        for tracker in self._trackers:
            mask = np.isin(table.api_key, list(tracker.apis))
            if tracker.data_apis:
                is_data = np.isin(table.api_key, list(tracker.data_apis))
                mask |= is_data & unusual
                mask |= is_data & self._of_topics(summaries, is_data & unusual, tracker)
            if tracker.errors:
                named = [bool(tracker.errors & {*each}) for each in summaries.error_lists]
                mask |= np.array(named, np.bool_)[summaries.errors]
            if tracker.follows_logins:
                mask |= login_rows(table, bool(tracker.open_logins()), self._has_open_login)
            if tracker.sees_unanswered:
                mask |= table.status == UNANSWERED
            for selection in tracker.selections:
                mask |= _selected(table, selection)
            if tracker.slow_ns:
                mask |= slow_rows(table, tracker.slow_ns)
            for column, least_ns in tracker.logged:
                mask |= self._logged_ns(table, column) >= least_ns
            masks.append((tracker, mask))
        return masks

    def _logged_ns(self, table: Exchanges, column: str) -> Ints:
        assert self._capture.reading is not None
        return self._capture.reading.logs.durations(table, column)

    def _has_open_login(self, position: int) -> bool:
        number = self._numbering.of(position)
        return any(number in tracker.open_logins() for tracker in self._trackers)

    def _of_topics(
        self, summaries: ExchangeSummaries, unusual: NDArray[np.bool_], tracker: Tracker
    ) -> NDArray[np.bool_]:
        """Return the rows of topics that a tracker needs, and rows with errors."""
        name = self._capture.names.name
        lists = [{name(topic) for topic in topics} for topics in summaries.topic_lists]
        wanted = tracker.wanted_topics()
        for code in unique(summaries.topics[unusual]).tolist():
            wanted |= lists[code]
        codes = [code for code, topics in enumerate(lists) if topics & wanted]
        return np.isin(summaries.topics, codes)

    def _complete_ns(self, window: Window) -> int:
        """Return the time before which no further event can begin."""
        reading = self._capture.reading
        assert reading is not None
        floor_ns = self._progress.advance(window, reading.packets)
        open_ns = [tracker.open_since_ns() for tracker in self._trackers]
        complete_ns = min([floor_ns, *(each for each in open_ns if each is not None)])
        self._order.add(
            self._repeats.expire(self._progress.live_ns if self._is_live else complete_ns)
        )
        begin_ns = self._repeats.open_since_ns()
        return complete_ns if begin_ns is None else min(complete_ns, begin_ns)

    def _released(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield passing events, masked, and marked as uncertain if their traffic is incomplete."""
        for event in events:
            certain = event.certain and self._losses.covers(event)
            yield event_without_secrets(replace(event, certain=certain), self._mask)


def _selected(table: Exchanges, selection: Selection) -> NDArray[np.bool_]:
    """Return the rows of a selection, with those that need a codec."""
    mask = np.zeros(len(table), np.bool_)
    is_chosen = (table.api_key == selection.api_key) & (
        table.api_version >= selection.first_version
    )
    rows = np.flatnonzero(is_chosen)
    if len(rows):
        path = tuple(selection.field.split("."))
        result = matches_any_value(table, selection.side, path, rows, selection.test)
        mask[rows[result.passes | result.unknown]] = True
    return mask
