"""One pass over a capture for statistics, bins, events and rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from conform.registry.verdict import Verdict
from dissector.cli.capture_source import Source
from dissector.cli.records import decoded_rows
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.exchanges.topic_resolution import LateNames
from dissector.engine.reading.capture import Capture, Reading, Window
from dissector.engine.tables.column_types import Columns, Integers, Row, row_count
from dissector.engine.tables.exchange_table import NONE
from dissector.protocol.context import using
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.query.contents.value_uses import DECODED, ValueUses
from dissector.summary.sections import NAMED
from dissector.summary.statistics import GROUPS, Grouping, Statistics
from dissector.summary.upgrade_check import (
    NEWEST,
    USES,
    UpgradeReport,
    check_brokers,
    check_clients,
)
from dissector.summary.version_offers import VersionOffers
from findings.gather.capture_pass import CapturePass, Scope
from findings.gather.covered_part import Part
from findings.gather.guarded_sections import Sections
from findings.public import finished_pass
from findings.registry.finding_report import FindingReport
from findings.sources.finding_source import select_sources
from report.gather.event_digest import EventDigest
from report.gather.exchange_dots import ExchangeDots
from report.gather.extreme_exchanges import ExtremeExchanges, failures, latency_ns, total_bytes
from report.gather.lag_courses import LagCourses
from report.gather.time_bins import TimeBins

EVENT_EXCHANGES = 20_000
"""Default number of exchanges for events: about 2 s."""

JUDGED_EXCHANGES = 1_000
"""Default number of exchanges for conformance: about 1 s, more with many APIs."""

DECODED_EXCHANGES = 20_000
"""Default number of exchanges whose records are decoded: some seconds with 30 records each."""

MOST_EXTREME = 25
MOST_FAILED = 100

_SECTIONS: Mapping[str, Grouping] = {
    **GROUPS,
    "errors": Grouping(("error", "api"), ("counts",)),
    "users": NAMED["topics"][1],
    "uses": USES,
}

_OF_FINDINGS = frozenset(("events", "conformance"))
"""Sections that the pass for findings gathers."""

_OF_LOGS: Mapping[str, Grouping] = {"broker_times": NAMED["broker_times"][1]}


@dataclass(frozen=True, slots=True)
class Wishes:
    """
    Requested contents of a report.

    Attributes:
        release: Kafka release for the upgrade check.
        event_exchanges: Number of exchanges for events; None for all, 0 for no events.
        judged_exchanges: Number of exchanges for conformance.
        decoded_exchanges: Number of exchanges whose records are decoded.
        show_secrets: Show credentials instead of masks.
    """

    release: str = NEWEST
    event_exchanges: int | None = EVENT_EXCHANGES
    judged_exchanges: int | None = JUDGED_EXCHANGES
    decoded_exchanges: int | None = DECODED_EXCHANGES
    show_secrets: bool = False


def _masked_records(exchange: Exchange) -> Iterator[Row]:
    return decoded_rows(record_rows(exchange), show_secrets=False)


@dataclass
class Figures:
    """
    The contents of a report.

    Attributes:
        source: Captures of the command.
        wishes: Requested contents.
        bins: Totals over time.
        slowest: Exchanges with the longest latencies.
        largest: Exchanges with the most bytes.
        failed: The first exchanges with errors.
        dots: All exchanges of a small capture.
        events: The events.
        sections: Sections that are incomplete, and why.
        followed: Part of the capture covered by events.
        judged: Part of the capture covered by conformance.
        decoded: Part of the capture whose records are decoded.
        value_uses: Formats and schemas of records.
        exchanges: Number of exchanges.
        begin_ns: Begin of the first exchange; 0 without any.
        end_ns: End of the last exchange.
        report: What stands out; None where that failed.
        verdict: Verdict on the checked part; None without one.
    """

    source: Source
    wishes: Wishes
    bins: TimeBins = field(default_factory=TimeBins)
    slowest: ExtremeExchanges = field(
        default_factory=lambda: ExtremeExchanges(MOST_EXTREME, latency_ns)
    )
    largest: ExtremeExchanges = field(
        default_factory=lambda: ExtremeExchanges(MOST_EXTREME, total_bytes)
    )
    failed: ExtremeExchanges = field(
        default_factory=lambda: ExtremeExchanges(MOST_FAILED, failures)
    )
    dots: ExchangeDots = field(default_factory=ExchangeDots)
    events: EventDigest = field(default_factory=EventDigest)
    sections: Sections = field(default_factory=Sections)
    exchanges: int = 0
    begin_ns: int = 0
    end_ns: int = 0
    report: FindingReport | None = None
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        scope = Scope(
            self.wishes.event_exchanges,
            # Rules need messages that the filter would drop.
            0 if self.source.filter else self.wishes.judged_exchanges,
            self.wishes.release,
            self.wishes.show_secrets,
        )
        self._found = CapturePass(self.capture, self.source.selection, scope, self.events.add)
        self.followed, self.judged = self._found.followed, self._found.judged
        self.decoded = Part(self.wishes.decoded_exchanges)
        self.value_uses = ValueUses()
        self.lags = LagCourses(self.capture, self.source.filter)
        self._offers = VersionOffers(self.capture)
        sections = {**_SECTIONS, **(_OF_LOGS if self.capture.has_logs else {})}
        self._statistics = Statistics(sections, self._offers.software_of, self.source.filter)
        self._late = LateNames(self.capture.names)

    @property
    def capture(self) -> Capture:
        """The capture."""
        return self.source.capture

    @property
    def reading(self) -> Reading:
        """The pass over the capture."""
        assert self.capture.reading is not None
        return self.capture.reading

    @property
    def problems(self) -> int:
        """Number of problems in messages and files."""
        return self._statistics.problems + self.source.problems

    def first_rows(self, section: str, most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the first rows of a section of statistics, and the number of all rows."""
        return self._statistics.first_rows(section, most)

    @cached_property
    def apis(self) -> list[dict[str, Any]]:
        """The totals of each API."""
        return self._all_rows("apis")

    @cached_property
    def uses(self) -> list[dict[str, Any]]:
        """API versions by client and broker."""
        return self._all_rows("uses")

    def _all_rows(self, section: str) -> list[dict[str, Any]]:
        def rows() -> list[dict[str, Any]]:
            return self._statistics.first_rows(section, sys.maxsize)[0]

        return self.sections.run("totals", rows, [])

    def check_clients(self) -> UpgradeReport:
        """Return clients that break with brokers of the release."""
        return check_clients(self.uses, self._offers, self.wishes.release)

    def check_brokers(self) -> UpgradeReport:
        """Return brokers that are too old for clients of the release."""
        return check_brokers(self.uses, self._offers, self.wishes.release)

    def gather(self) -> None:
        """Read the capture."""
        self.source.observers.append(self._offers.observe)
        for window in self.source.each_window(gleaning=True):
            self._found.add(window)
            self.sections.feed("latency", partial(self.dots.look_for_records, window))
            self._add_columns(window)
            self.sections.feed("lag", partial(self.lags.add, window))
            decoded = self.decoded.take(window, whole=False)
            if decoded is not None and len(decoded.exchanges):
                self.sections.feed("values", partial(self._decode_window, decoded))
            del window, decoded  # frees their memory before the next window is read
        for columns in self._late.finish():
            self._add(columns)
        self.report = self.sections.run("findings", self._stands_out, None)

    def _stands_out(self) -> FindingReport:
        secrets = self.wishes.show_secrets
        facts, report = finished_pass(self._found, select_sources((), ()), show_secrets=secrets)
        self.verdict = facts.verdict
        for name in _OF_FINDINGS & self._found.sections.notes.keys():
            self.sections.notes[name] = self._found.sections.notes[name]
            if name in self._found.sections.bugs:
                self.sections.bugs[name] = self._found.sections.bugs[name]
        return report

    def _decode_window(self, window: Window) -> None:
        values = self.source.record_values()
        parts = self.source.selection.record_parts(window, is_secret_topic, _masked_records)
        parts = self.source.without_secrets(parts, self.wishes.show_secrets)
        with using(self.capture.options.schemas):
            for columns in values.parts(parts, DECODED):
                self.value_uses.add(columns)

    def _add_columns(self, window: Window) -> None:
        """Add the matching exchanges of a window."""
        if self.source.filter is not None:
            self._add(self.source.selection.rows(window))
        elif len(window.exchanges):
            for columns in self._late.add(self.capture.unresolved_columns(window)):
                self._add(columns)

    def _add(self, columns: Columns) -> None:
        if not row_count(columns):
            return
        self.sections.feed("totals", partial(self._statistics.add, columns))
        self.sections.feed("time", partial(self.bins.add, columns))
        self.sections.feed("latency", partial(self.dots.add, columns))
        for extreme in (self.slowest, self.largest, self.failed):
            self.sections.feed("exchanges", partial(extreme.add, columns))
        self.exchanges += row_count(columns)
        for name in ("request_time_ns", "response_time_ns"):
            column = columns[name]
            assert isinstance(column, Integers)
            times = column.values[column.values != NONE]
            if len(times):
                earliest = int(np.min(times))
                self.begin_ns = min(self.begin_ns or earliest, earliest)
                self.end_ns = max(self.end_ns, int(np.max(times)))
