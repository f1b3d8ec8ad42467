"""From windows to a report: the evidence of a capture, and what all detectors find in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from advise.catalogue.connection_catalogue import CONNECTION_PER_REQUEST, HUNG_REQUESTS
from advise.catalogue.group_catalogue import REBALANCE_LOOP
from advise.catalogue.producer_catalogue import PRODUCER_PER_RECORD, TINY_BATCHES
from advise.detectors import DETECTORS
from advise.detectors.subject_judge import Judge
from advise.evidence.capture_evidence import CaptureEvidence
from advise.registry.advice import RANKS, Advice
from advise.registry.advice_limits import Limits
from advise.registry.advice_report import AdviceFinding, AdviceReport, Subject
from advise.script_advice import ScriptAdvice, ScriptJudge
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.context import using
from timeline.events.words import mask_of

if TYPE_CHECKING:
    from dissector.engine.reading.capture import Capture, Window


class Adviser:
    """Gathers the evidence of a capture, window by window, and gives advice at its end."""

    def __init__(self, advices: Sequence[Advice], limits: Limits, capture: Capture) -> None:
        """
        Begin.

        Args:
            advices: What to look for.
            limits: All thresholds.
            capture: The capture.
        """
        self._advices, self._limits, self._capture = advices, limits, capture
        self._script_judges = [
            ScriptJudge(each) for each in advices if isinstance(each, ScriptAdvice)
        ]
        self._evidence = CaptureEvidence(
            capture,
            limits[TINY_BATCHES.id]["linger_ms"],
            limits[HUNG_REQUESTS.id]["seconds"],
            limits[REBALANCE_LOOP.id]["count"],
        )

    def add(self, window: Window) -> None:
        """Add a window, read with `gleaning`; windows must be passed in order."""
        self._evidence.add(window)
        if self._script_judges:
            with using(self._capture.options.schemas):
                for exchange in map(Exchange.for_programs, self._capture.exchanges_of(window)):
                    for judge in self._script_judges:
                        judge.add(exchange)

    def finish(self, *, show_secrets: bool = False) -> AdviceReport:
        """
        End the pass, and return the advice.

        Args:
            show_secrets: Show names that hold credentials instead of masks.
        """
        evidence = self._evidence
        evidence.finish()
        mask = mask_of(self._capture, show_secrets)
        own = [
            Judge(each, self._limits[each.id], evidence)
            for each in self._advices
            if not isinstance(each, ScriptAdvice)
        ]
        for each in own:
            DETECTORS[each.advice.id](each)
        judges: list[Judge | ScriptJudge] = [*own, *self._script_judges]
        found = [each for judge in judges for each in judge.findings]
        findings = [_masked(each, mask) for each in _without_consequences(found)]
        findings.sort(key=lambda each: (RANKS.index(each.rank), -each.count, each.advice.id))
        clients = evidence.totals(evidence.requests.calls, "client")
        return AdviceReport(
            list(self._advices),
            findings,
            {judge.advice.id: judge.judged for judge in judges},
            {judge.advice.id: dict(judge.unjudged) for judge in judges if judge.unjudged},
            evidence.span.begin_ns,
            evidence.span.end_ns,
            len(clients),
            sum(row["count"] for row in clients),
        )


def advise_windows(
    advices: Sequence[Advice],
    limits: Limits,
    capture: Capture,
    windows: Iterable[Window],
    *,
    show_secrets: bool = False,
) -> AdviceReport:
    """
    Return the advice on a capture; see `Adviser`.

    Args:
        advices: What to look for.
        limits: All thresholds.
        capture: The capture.
        windows: All its windows, read with `gleaning`.
        show_secrets: Show names that hold credentials instead of masks.
    """
    adviser = Adviser(advices, limits, capture)
    for window in windows:
        adviser.add(window)
        del window  # frees its memory before the next one is read
    return adviser.finish(show_secrets=show_secrets)


def _without_consequences(findings: Sequence[AdviceFinding]) -> list[AdviceFinding]:
    """Return findings but the many connections of clients that open many producers."""
    causes = {
        (each.subject.client_id, each.subject.host)
        for each in findings
        if each.advice is PRODUCER_PER_RECORD
    }
    return [
        each
        for each in findings
        if each.advice is not CONNECTION_PER_REQUEST
        or (each.subject.client_id, each.subject.host) not in causes
    ]


def _masked(finding: AdviceFinding, mask: Callable[[str], str]) -> AdviceFinding:
    """Return a finding with masked names where they hold a credential."""
    subject = finding.subject
    names = {each.name: mask(getattr(subject, each.name)) for each in fields(Subject)}
    return replace(
        finding,
        subject=Subject(**names),
        found=mask(finding.found),
        cost=mask(finding.cost),
        filter=mask(finding.filter),
    )
