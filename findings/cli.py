"""`kafkashark CAPTURE...`, or `kafkashark findings`: what stands out in a capture."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dissector.cli.declared.check_options import CheckOptions, about_items, looks_for
from dissector.cli.declared.reading_options import (
    CopyOptions,
    LiveOptions,
    PeriodOptions,
    ReadingOptions,
    SecretOptions,
)
from dissector.cli.declared.row_options import LimitOptions, TimeOptions
from dissector.cli.parsing.declarations import Options, option
from dissector.errors import UsageError

if TYPE_CHECKING:
    from findings.gather.capture_pass import Scope
    from findings.registry.finding_report import FindingReport
    from findings.sources.finding_source import FindingSource

FAIL_ON = ("breaks", "costs", "differs", "informs", "nothing")

EXIT_FOUND = 1

ALL = "all"

LIVE_INTERVAL_S = 2.0
"""Time between two reports of a live capture on a terminal, in seconds."""


def _source_names() -> Iterable[str]:
    from findings.sources import SOURCES

    return SOURCES


class ScopeOptions(Options):
    """How much of a capture events and conformance cover."""

    events: str | None = option(
        "--events",
        default=None,
        metavar="N|all",
        help="Number of exchanges, from the first, processed for events; default: 20,000. "
        "0 omits events.",
    )
    conform: str | None = option(
        "--conform",
        default=None,
        metavar="N|all",
        help="Number of exchanges, from the first, checked for conformance; default: 1,000. "
        "0 omits the check.",
    )


@looks_for("source", "error,slow", _source_names)
class FindingOptions(
    PeriodOptions,
    CheckOptions,
    ScopeOptions,
    LimitOptions,
    TimeOptions,
    ReadingOptions,
    CopyOptions,
    SecretOptions,
    LiveOptions,
):
    """The options of `findings`."""

    fail_on: str = option(
        "--fail-on",
        default="nothing",
        metavar="RANK",
        choices=FAIL_ON,
        help=f"Mildest rank with exit status 1: {'|'.join(FAIL_ON)}.",
    )
    interval: float | None = option(
        "--interval",
        default=None,
        metavar="S",
        least=0.1,
        help="Print the report so far every S seconds; on a terminal in place. Live: by default "
        f"every {LIVE_INTERVAL_S:g}.",
    )


def findings(given: FindingOptions) -> int:
    """Print what stands out in a capture: one list, the worst first.

    This is the command without a name: kafkashark a.pcap. Above the list is what the capture is,
    and how complete; below it, what could not be judged, and commands to go on. A finding has its
    clients, packets, time and a display filter for its exchanges. Ranks: breaks, costs, differs
    (from Apache Kafka), informs.

    Live, refreshed: kafkashark findings -i eth0
    """
    # All is loaded before a live capture begins: its first packets must not wait.
    from dissector.cli import capture_source  # noqa: F401
    from dissector.cli.live_input import accepts_live
    from findings import public  # noqa: F401

    return accepts_live(_findings)(given)


def _findings(given: FindingOptions) -> int:
    from dissector.cli.output import write_lines
    from findings.registry.ranked_finding import Rank
    from findings.sources.finding_source import select_sources, source_by_name

    form = given.chosen_form
    if given.explain is not None:
        explained = source_by_name(given.explain)
        write_lines(about_items(form, _source_lines([explained]), [_row(explained)]), given.output)
        return 0
    sources = select_sources(given.select, given.ignore)
    if given.list_items:
        lines = (f"{each.name:<12} {each.title}" for each in sources)
        write_lines(about_items(form, lines, map(_row, sources)), given.output)
        return 0
    report = _read(given, sources, form)
    report.fail_on = None if given.fail_on == "nothing" else Rank(given.fail_on)
    return EXIT_FOUND if report.fail_on and not report.passed else 0


def _read(given: FindingOptions, sources: Sequence[FindingSource], form: str) -> FindingReport:
    """Read the captures, write the report, again and again if asked to; return the last one."""
    from dissector.cli.capture_source import source
    from dissector.cli.output import is_terminal
    from dissector.cli.refreshed_output import RefreshedOutput
    from findings.gather.capture_pass import CapturePass
    from findings.public import current_report, finished_report

    interval = given.interval
    if interval is None and given.interfaces and form == "text" and is_terminal(given.output):
        interval = LIVE_INTERVAL_S
    read = source(given, given.selected)
    if interval is not None:
        read.capture.read_in_step()
    found = CapturePass(read.capture, read.selection, _scope(given))
    screen = RefreshedOutput(given.output, interval)
    secrets = given.show_secrets

    def so_far() -> list[str]:
        return list(_lines(given, form, current_report(found, sources, show_secrets=secrets)))

    read.after_window = lambda: screen.refresh(so_far)
    for window in read.each_window(gleaning=True):
        found.add(window)
        del window  # frees its memory before the next one is read
    report = finished_report(found, sources, show_secrets=secrets)
    screen.write_last(list(_lines(given, form, report)))
    for name, bug in report.faults.items():
        line = f"kafkashark: a bug in kafkashark: findings: {name}: {bug}"
        print(f"{line}; the other sources are complete", file=sys.stderr)
    return report


def _lines(given: FindingOptions, form: str, report: FindingReport) -> Iterator[str]:
    """Return a report in a format."""
    from dissector.cli.output import terminal_width
    from dissector.cli.presentation.table_options import given_times, has_color
    from dissector.view.document.check_report import CheckReport
    from findings.output.finding_document import finding_document, finding_suite
    from findings.output.finding_lines import FindingLines
    from findings.output.finding_rows import report_rows
    from findings.output.finding_scan import finding_scan
    from findings.registry.ranked_finding import Rank

    captures = [str(each) for each in given.captures]
    subject = captures[0] if len(captures) == 1 else f"{len(captures)} captures"
    report.fail_on = None if given.fail_on == "nothing" else Rank(given.fail_on)
    if form == "text":
        times = given_times(given, lambda: report.headline.begin_ns)
        lines = FindingLines(
            terminal_width(given.output),
            is_coloured=has_color(given, given.output),
            time=None if times is None else times.text,
        )
        return lines.lines(report, captures, given.limit)
    return CheckReport(
        lambda _: finding_document(report, subject),
        lambda: finding_suite(report, subject),
        lambda: report_rows(report, subject, given.limit),
        lambda: finding_scan(report, subject),
    ).lines(form)


def _scope(given: FindingOptions) -> Scope:
    from dissector.cli.settings.settings_file import settings_file
    from findings.gather.capture_pass import EVENT_EXCHANGES, JUDGED_EXCHANGES, Scope

    return Scope(
        event_exchanges=number_or_all("--events", given.events, EVENT_EXCHANGES),
        judged_exchanges=number_or_all("--conform", given.conform, JUDGED_EXCHANGES),
        show_secrets=given.show_secrets,
        thresholds=settings_file().numbers_of("advise"),
    )


def number_or_all(option: str, text: str | None, default: int) -> int | None:
    """
    Return a number of exchanges; None for all.

    Raises:
        UsageError: The text is not a number.
    """
    if text is None:
        return default
    if text == ALL:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise UsageError(f"{option} takes a number or {ALL}, not {text!r}")
    return int(text)


def _source_lines(sources: Iterable[FindingSource]) -> Iterator[str]:
    for each in sources:
        yield f"{each.name}: {each.title}"
        yield ""
        yield each.meaning


def _row(source: FindingSource) -> dict[str, str]:
    return {"source": source.name, "title": source.title, "meaning": source.meaning}
