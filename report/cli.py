"""The command `kafkashark report`."""

from __future__ import annotations

import sys
from pathlib import Path

from dissector.cli.declared.reading_options import (
    CopyOptions,
    OutputOptions,
    PeriodOptions,
    ReadingOptions,
    SecretOptions,
)
from dissector.cli.parsing.declarations import option
from dissector.cli.presentation.completion import complete_words
from dissector.errors import UsageError
from dissector.protocol.releases.kafka_release_table import RELEASES
from findings.cli import ScopeOptions, number_or_all

_OF_FINDINGS = (".ndjson", ".xml", ".sarif")
"""Suffixes of formats that only findings have."""


class ReportOptions(
    ScopeOptions, PeriodOptions, OutputOptions, ReadingOptions, CopyOptions, SecretOptions
):
    """The options of `report`."""

    to: str | None = option(
        "--to",
        default=None,
        metavar="RELEASE",
        complete=complete_words(lambda: RELEASES),
        help="Kafka release for the upgrade check; default: the newest.",
    )
    records: str | None = option(
        "--records",
        default=None,
        metavar="N|all",
        help="Number of exchanges, from the first, whose records are decoded; default: 20,000. "
        "0 leaves out formats and schemas.",
    )


def report(given: ReportOptions) -> None:
    """Write a report on a capture: one self-contained HTML page, or text (-o report.txt).

    Contents: gaps of the capture; throughput, latencies and errors over time by API, client, topic
        and broker; the slowest and largest exchanges; events of groups, transactions and producers;
        topics and their clients; formats and schemas of records; conformance; incompatibilities
        with a Kafka release. Events, schemas and conformance cover the first exchanges only, see
        --events, --records and --conform; everything else covers all exchanges.
    """
    from dissector.cli import capture_source
    from dissector.cli.output import is_terminal, open_atomic
    from dissector.view.document.html_form import html_lines
    from dissector.view.document.text_form import text_lines
    from report.gather.figures import (
        DECODED_EXCHANGES,
        EVENT_EXCHANGES,
        JUDGED_EXCHANGES,
        Figures,
        Wishes,
    )
    from report.page.capture_document import capture_document

    output = given.output
    if is_terminal(output):
        raise UsageError("report requires an output file: -o report.html")
    suffix = Path(output or "").suffix.lower()
    if suffix in _OF_FINDINGS:
        raise UsageError(f"{output}: report writes *.html or *.txt; findings -o writes *{suffix}")
    wishes = Wishes(
        event_exchanges=number_or_all("--events", given.events, EVENT_EXCHANGES),
        judged_exchanges=number_or_all("--conform", given.conform, JUDGED_EXCHANGES),
        decoded_exchanges=0
        if given.no_values
        else number_or_all("--records", given.records, DECODED_EXCHANGES),
        show_secrets=given.show_secrets,
        **({} if given.to is None else {"release": _release(given.to)}),
    )
    source = capture_source.source(given, given.selected)
    figures = Figures(source, wishes)
    figures.gather()
    document = capture_document(figures)
    lines = text_lines(document) if suffix == ".txt" else html_lines(document)
    with open_atomic(output) as file:
        file.writelines(f"{line}\n".encode() for line in lines)
    for section, bug in figures.sections.bugs.items():
        line = f"kafkashark: a bug in kafkashark: report: section {section}: {bug}"
        print(f"{line}; the other sections are complete", file=sys.stderr)


def _release(text: str) -> str:
    """
    Parse the name of a release.

    Raises:
        UsageError: The release is unknown.
    """
    from dissector.protocol.releases.removals import check_release
    from dissector.summary.upgrade_check import NEWEST, OLDEST

    release = check_release(text)
    if release is None:
        raise UsageError(f"--to takes a release of Kafka, {OLDEST} to {NEWEST}, not {text!r}")
    return release
