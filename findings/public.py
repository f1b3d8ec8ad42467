"""What stands out in captures: the function behind `kafkashark findings`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dissector.engine.reading.capture import Capture
from dissector.errors import UsageError
from dissector.protocol.context import using
from dissector.public import open_capture
from dissector.query.capture_sources import Sources
from dissector.query.filtered_capture import Capture as FilteredCapture
from dissector.query.selection import Selection
from findings import sources as _all_sources  # noqa: F401  (fills the registry)
from findings.gather.capture_facts import CaptureFacts
from findings.gather.capture_pass import CapturePass, Scope
from findings.output import finding_document  # noqa: F401  (adds the form in notebooks)
from findings.ranking import ranked
from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import Rank, RankedFinding
from findings.sources.finding_source import FindingSource, select_sources
from timeline.events.words import mask_of


def findings(
    *captures: Sources | Capture,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    scope: Scope = Scope(),  # noqa: B008 (frozen)
    fail_on: Rank | str | None = None,
) -> FindingReport:
    """
    Return what stands out in a capture, the worst first, as `kafkashark findings` does.

        for finding in findings("a.pcap"):
            print(finding.rank, finding.title, finding.packets, finding.filter)

    Args:
        captures: Parts of one capture in any order, as for `open_capture`, or one `Capture` of it,
            possibly with a filter.
        select: Sources of findings (`error`, `slow`), also with commas; empty: all.
        ignore: The sources to omit.
        scope: How much of the capture events and conformance cover.
        fail_on: The mildest rank with which the report does not pass; None: none.

    Returns:
        The findings, and what the capture is.

    Raises:
        CaptureError: A file can't be opened, or is not a capture.
        UsageError: An unknown source or rank, or no capture.
        FilterError: The filter of the capture does not parse.
    """
    chosen = select_sources(select, ignore)
    rank = _rank(fail_on)
    if not captures:
        raise UsageError("findings needs a capture: the name of a file, or a Capture")
    first = captures[0]
    if isinstance(first, Capture):
        if len(captures) > 1:
            raise UsageError("findings expects one Capture, or names of files")
        capture = first
    else:
        capture = open_capture(*(each for each in captures if not isinstance(each, Capture)))
    text = capture.filter_text if isinstance(capture, FilteredCapture) else None
    with using(capture.options.schemas):
        found = CapturePass(capture, Selection.of(capture, text), scope)
        for window in capture.windows(gleaning=True):
            found.add(window)
            del window  # frees its memory before the next one is read
        report = finished_report(found, chosen, show_secrets=scope.show_secrets)
    report.fail_on = rank
    return report


def finished_report(
    found: CapturePass, sources: Iterable[FindingSource], *, show_secrets: bool = False
) -> FindingReport:
    """Return the report of a pass that has read all windows."""
    return finished_pass(found, sources, show_secrets=show_secrets)[1]


def finished_pass(
    found: CapturePass, sources: Iterable[FindingSource], *, show_secrets: bool = False
) -> tuple[CaptureFacts, FindingReport]:
    """Return what a pass that has read all windows gathered, and the report of it."""
    facts = found.finish()
    report = _report(found, ranked(facts, sources, found.sections, _mask(found, show_secrets)))
    if facts.advice is not None and facts.advice.unjudged:
        judged = sum(bool(count) for count in facts.advice.judged.values())
        report.unjudged.append(
            f"advice: {judged} of {len(facts.advice.advices)} judged; others had too little "
            "traffic (kafkashark advise)"
        )
    if facts.verdict is not None:
        report.unjudged.append(
            f"conformance: {facts.verdict.rules_judged} of {len(facts.verdict.rules)} rules "
            "judged; others had no evidence (kafkashark conform)"
        )
    return facts, report


def current_report(
    found: CapturePass, sources: Iterable[FindingSource], *, show_secrets: bool = False
) -> FindingReport:
    """Return the report of a pass so far, without advice."""
    facts = found.facts()
    return _report(found, ranked(facts, sources, found.sections, _mask(found, show_secrets)))


def _report(found: CapturePass, findings: list[RankedFinding]) -> FindingReport:
    report = FindingReport(found.headline(), findings, faults=dict(found.sections.bugs))
    exchanges = report.headline.exchanges
    for name, part in (("events", found.followed), ("conformance", found.judged)):
        if exchanges and part.most == 0:
            report.unjudged.append(f"{name}: not looked for")
        elif part.is_cut:
            report.unjudged.append(f"{name}: only of the first {part.count:,} exchanges")
    stopped = (each for each in found.sections.notes if each not in found.sections.bugs)
    report.unjudged += (f"{name}: {found.sections.notes[name]}" for name in stopped)
    return report


def _mask(found: CapturePass, show_secrets: bool) -> Callable[[str], str]:
    return mask_of(found.capture, show_secrets)


def _rank(name: Rank | str | None) -> Rank | None:
    if name is None:
        return None
    if name not in tuple(Rank):
        raise UsageError(f"fail_on takes {', '.join(Rank)}, not {name!r}")
    return Rank(name)
