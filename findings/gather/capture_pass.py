"""One pass over a capture that gathers what the sources of findings read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from advise.adviser import Adviser
from advise.public import select_advices
from advise.registry.advice_limits import Limits, limits_of
from advise.script_advice import script_advices
from conform.judge import Judge
from conform.rule_budgets import RuleBudget
from conform.rule_selection import select_rules
from conform.rules import REGISTRY
from dissector.engine.reading.capture import Capture, Reading, Window
from dissector.engine.tables.column_types import distinct, select_rows
from dissector.engine.tables.exchange_table import NONE
from dissector.protocol.context import using
from dissector.query.passing_packets import PassingPackets
from dissector.query.selection import Selection
from dissector.summary.statistics import Grouping, Statistics
from dissector.summary.upgrade_check import NEWEST, USES, UpgradeReport, check_clients
from dissector.summary.version_offers import VersionOffers
from findings.gather.capture_facts import CaptureFacts
from findings.gather.capture_lacks import kafka_states, lacks
from findings.gather.covered_part import Part
from findings.gather.event_groups import EventGroups
from findings.gather.failed_rows import FailedRows
from findings.gather.guarded_sections import SectionBudget, Sections
from findings.gather.part_rows import PartRows, Places
from findings.gather.slow_rows import SlowRows
from findings.registry.finding_report import Headline
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.events.event import Event

EVENT_EXCHANGES = 20_000
"""Default number of exchanges for events: about 2 s."""

JUDGED_EXCHANGES = 1_000
"""Default number of exchanges for conformance: about 1 s, more with many APIs."""

_RULE_BUDGET = RuleBudget(seconds=20.0, state_bytes=64 << 20)

_SECTION_BUDGET = SectionBudget(seconds=30.0, peak_bytes=1 << 30)

_TOTALS = {
    "uses": USES,
    "apis": Grouping(("api",), ("counts",)),
    "clients": Grouping(("client",), ("counts",)),
    "brokers": Grouping(("broker",), ("counts",)),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """
    How much of a capture is looked at.

    Attributes:
        event_exchanges: Number of exchanges, from the first, for events; None: all; 0: none.
        judged_exchanges: Number of exchanges, from the first, for conformance.
        release: Release of Kafka for the check of upgrades.
        show_secrets: Show names that hold credentials instead of masks.
        thresholds: Those of advice that the settings change.
    """

    event_exchanges: int | None = EVENT_EXCHANGES
    judged_exchanges: int | None = JUDGED_EXCHANGES
    release: str = NEWEST
    show_secrets: bool = False
    thresholds: Limits | None = None


class CapturePass:
    """
    Gathers what stands out, window by window.

    Attributes:
        capture: The capture.
        sections: What failed, or reached its budget.
        followed: The part of the capture that events cover.
        judged: The part of the capture that conformance covers.
    """

    def __init__(
        self,
        capture: Capture,
        selection: Selection,
        scope: Scope,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        """
        Begin.

        Args:
            capture: The capture.
            selection: The exchanges that pass the filter.
            scope: How much is looked at.
            on_event: Called with each event of the timeline.
        """
        self.capture, self._selection, self._scope = capture, selection, scope
        self._on_event = on_event
        self.sections = Sections(_SECTION_BUDGET)
        self.followed = Part(scope.event_exchanges)
        self.judged = Part(scope.judged_exchanges)
        self._offers = VersionOffers(capture)
        self._totals = Statistics(_TOTALS, self._offers.software_of)
        self._failed, self._slow = FailedRows(), SlowRows()
        self._unanswered: dict[str, Places] = {}
        self._broken: dict[str, Places] = {}
        self._events = EventGroups()
        passes = None if selection.filter is None else selection.passes
        self._timeline = Timeline(capture, passes=passes, show_secrets=scope.show_secrets)
        rules = select_rules((rule for rule in REGISTRY.values() if rule.on != "live"), (), ())
        self._judge = Judge(rules, _RULE_BUDGET)
        scripts = capture.options.values.scripts if capture.options.values else ()
        advices = select_advices((), (), script_advices(scripts, capture.notices.append))
        self._adviser = Adviser(advices, limits_of((), scope.thresholds), capture)
        self._passing = PassingPackets(selection)
        self._file_problems = 0
        self._end_ns = 0

    @property
    def reading(self) -> Reading:
        """The pass over the capture."""
        assert self.capture.reading is not None
        return self.capture.reading

    def add(self, window: Window) -> None:
        """Add a window, read with `gleaning`; windows must be passed in order."""
        self._file_problems += len(window.problems)
        self.sections.read_bytes += len(window.exchanges.data)
        if len(window.exchanges):
            self.sections.feed("upgrade", partial(self._offers.observe, window))
            self.sections.feed("exchanges", partial(self._add_rows, window))
            self._feed("advice", partial(self._adviser.add, window))
        judged = self.judged.take(window, whole=False)
        if judged is not None and len(judged.exchanges):
            self._feed("conformance", partial(self._judge.judge_window, self.capture, judged))
        followed = self.followed.take(window, whole=True)
        if followed is not None:
            self.sections.feed("events", partial(self._advance, followed))

    def finish(self) -> CaptureFacts:
        """End the pass; return what was gathered."""
        if self.followed.count:
            self.sections.feed("events", self._finish_events)
        advice = self.sections.run("advice", self._advice, None)
        verdict = None
        if self.judged.count:
            verdict = self._judge.finish(self.reading)
            if self.judged.is_cut:  # later exchanges could clear a connection
                kinds = verdict.kinds.items()
                for key in [key for key, kind in kinds if kind.first.rule.on == "close"]:
                    del verdict.kinds[key]
        return replace(self.facts(), advice=advice, verdict=verdict)

    def facts(self) -> CaptureFacts:
        """Return what was gathered so far, without advice."""
        name = self.capture.names.name
        nothing = UpgradeReport([], 0, 0)
        return CaptureFacts(
            self._end_ns,
            self._failed,
            self._slow,
            self._unanswered,
            self._broken,
            self._events,
            self._judge.verdict if self.judged.count else None,
            None,
            self._scope.release,
            self.sections.run("upgrade", self._upgrade, nothing),
            lacks(self.reading, kafka_states(self.reading), self._problems),
            lambda topic: str(name(topic)),  # type: ignore[arg-type]
            self._passing.any,
        )

    def headline(self) -> Headline:
        """Return what the capture is, so far."""
        reading, rows = self.reading, self._totals.sections()
        apis, clients = rows["apis"], rows["clients"]
        found = lacks(reading, kafka_states(reading), self._problems)
        return Headline(
            begin_ns=reading.source.begin_ns,
            end_ns=self._end_ns,
            packets=reading.packets,
            connections=len(reading.streams.connections),
            kafka_connections=reading.correlator.spoken()["kafka"],
            brokers=[str(row["broker"]) for row in rows["brokers"]],
            clients=len(clients),
            exchanges=sum(row["count"] for row in apis),
            failed=sum(row["errors"] for row in apis),
            unanswered=sum(row["unanswered"] for row in apis),
            apis={str(row["api"] or "unknown"): row["count"] for row in apis},
            tls=len(reading.decryption),
            decrypted=reading.decryption.decrypted_count,
            lacks=[f"{each.count:,} {each.what}" for each in found if each.count],
        )

    @property
    def _problems(self) -> int:
        return self._totals.problems + self._file_problems

    def _feed(self, name: str, work: Callable[[], Any]) -> None:
        def under_schemas() -> None:
            with using(self.capture.options.schemas):
                work()

        self.sections.feed(name, under_schemas)

    def _add_rows(self, window: Window) -> None:
        table, columns = window.exchanges, self.capture.unresolved_columns(window)
        chosen = self._selection.rows_that_pass(window)
        if chosen is not None:
            table, columns = table.rows(chosen), select_rows(columns, chosen)
            self._passing.add_table(table)
        if not len(table):
            return
        part = PartRows(table, columns)
        self._end_ns = max(self._end_ns, int(table.response.time_ns.max(initial=NONE)))
        self._end_ns = max(self._end_ns, int(part.time_ns.max(initial=NONE)))
        self._totals.add(columns)
        self._failed.add(part)
        with using(self.capture.options.schemas):
            self._slow.add(part)
        _add_by_api(self._unanswered, part, part.has("status", "unanswered"))
        problems = part.coded("problems")
        has_problem = np.array([bool(each) for each in problems.values], np.bool_)
        _add_by_api(self._broken, part, has_problem[problems.codes])

    def _advance(self, window: Window) -> None:
        for event in self._timeline.advance(window):
            self._add_event(event)

    def _finish_events(self) -> None:
        for event in self._timeline.finish():
            # Requests open at the end of the part may be completed later.
            if not (self.followed.is_cut and event.event == "left open"):
                self._add_event(event)

    def _add_event(self, event: Event) -> None:
        self._events.add(event)
        self._on_event(event)

    def _advice(self) -> Any:
        with using(self.capture.options.schemas):
            return self._adviser.finish(show_secrets=self._scope.show_secrets)

    def _upgrade(self) -> UpgradeReport:
        return check_clients(self._totals.sections()["uses"], self._offers, self._scope.release)


def _add_by_api(found: dict[str, Places], part: PartRows, chosen: Any) -> None:
    rows = np.flatnonzero(chosen)
    api = part.coded("api")
    which, codes = distinct(api.codes[rows])
    for index, code in enumerate(codes.tolist()):
        name = str((None if code == NONE else api.values[code]) or "")
        found.setdefault(name, Places()).add(part, rows[which == index])
