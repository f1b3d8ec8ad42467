"""What the report of a server says: as a document, as test cases, and as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.view.document import html_form, junit_form, text_form
from dissector.view.document.content import (
    Block,
    Document,
    Finding,
    Findings,
    Section,
    table_of,
)
from dissector.view.document.junit_form import TestCase, TestSuite
from dissector.view.document.report_files import Form, form_of, section_lines, write_lines
from serve.report.serve_report import Miss, ServeReport


def serve_document(report: ServeReport) -> Document:
    """Return the report; credentials in it are masked."""
    sections = [Section("requests", "Requests", _tables(report))]
    if report.miss_count:
        sections.append(Section("misses", "Misses", _misses(report)))
    return Document(
        "Served capture", headline(report), sections, "bad" if report.miss_count else "good"
    )


def headline(report: ServeReport) -> str:
    """Return the numbers of requests, connections and misses."""
    total = report.counts.total()
    return f"{total:,} requests on {report.connections:,} connections, {report.miss_count:,} misses"


def _tables(report: ServeReport) -> Iterator[Block]:
    for title, name, counts in (
        ("Requests", "api", report.counts),
        ("Injected faults", "fault", report.faults),
        ("Closed connections", "reason", report.garbage),
    ):
        rows = [{"count": count, name: mask_texts(key)} for key, count in counts.most_common()]
        yield from table_of(title, rows)


def _misses(report: ServeReport) -> Iterator[Block]:
    more = report.miss_count - len(report.misses)
    title = f"Misses; {more:,} more or repeated ones are not listed" if more else "Misses"
    yield Findings(map(_finding, report.misses), title)


def _finding(miss: Miss) -> Finding:
    parts: Mapping[str, Any] = {
        "nearest": miss.nearest,
        "field": miss.field,
        "sent": miss.sent if miss.field else "",
        "captured": miss.captured if miss.field else "",
        "answered": f"by the {miss.answered_by}" if miss.answered_by else "",
    }
    shown = [(name, mask_texts(value)) for name, value in parts.items() if value != ""]
    return Finding(mask_texts(miss.title), shown, mood="bad")


def serve_suite(report: ServeReport) -> TestSuite:
    """Return a test case for each API; misses fail it."""
    cases = []
    for api in report.counts:
        missed = [str(miss) for miss in report.misses if miss.api == api]
        case = TestCase(api)
        if missed:
            case.outcome, case.message = "failure", f"{len(missed):,} different misses"
            case.details = [mask_texts(each) for each in missed]
        cases.append(case)
    return TestSuite("kafkashark serve", "kafkashark.serve", cases, 0.0, headline(report))


def serve_rows(report: ServeReport) -> Iterator[tuple[str, Iterable[Mapping[str, Any]]]]:
    """Yield the sections of the report, and their rows."""
    summary = {
        "requests": report.counts.total(),
        "connections": report.connections,
        "misses": report.miss_count,
    }
    yield "summary", [summary]
    yield "api", [{"api": api, "count": count} for api, count in report.counts.most_common()]
    yield "fault", [{"fault": each, "count": count} for each, count in report.faults.most_common()]
    closed = [{"reason": why, "count": count} for why, count in report.garbage.most_common()]
    yield "closed", mask_texts(closed)
    yield "miss", (mask_texts(asdict(miss)) for miss in report.misses)


def text_lines(report: ServeReport) -> Iterator[str]:
    """Yield the report as text."""
    return text_form.text_lines(serve_document(report))


WRITERS: Mapping[Form, Callable[[ServeReport], Iterable[str]]] = {
    "text": text_lines,
    "html": lambda report: html_form.html_lines(serve_document(report)),
    "junit": lambda report: junit_form.junit_lines(serve_suite(report)),
    "ndjson": lambda report: section_lines(serve_rows(report)),
}


def write_report(report: ServeReport, file: str | Path) -> None:
    """
    Write a report in the format of the file's suffix.

    Raises:
        UsageError: The suffix of the file is unknown.
    """
    write_lines(WRITERS[form_of(file)](report), file)
