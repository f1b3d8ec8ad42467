"""The report of a replay, in all its forms: text, lines of JSON, JUnit XML, a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dissector.view.document import html_form, junit_form, text_form
from dissector.view.document.report_files import Form, form_of, section_lines, write_lines
from replay.report.replay_document import MAX_DIFFERENCES, MAX_FIELDS, replay_page, replay_text
from replay.report.replay_suite import replay_suite
from replay.report.report_rows import sections_of
from replay.report.report_words import verdict_line
from replay.report.results import Results

_MAX_NOTEBOOK_DIFFERENCES = 50


class Report(Results):
    """The results of a replay; `str()` gives the text report."""

    def __repr__(self) -> str:
        return f"<Report {verdict_line(self)}>"

    def _repr_html_(self) -> str:
        from dissector.view.text.notebook import page_html

        return page_html("Replay", html_lines(self, _MAX_NOTEBOOK_DIFFERENCES))

    def __str__(self) -> str:
        return "\n".join(text_lines(self))


def text_lines(
    report: Results, max_fields: int = MAX_FIELDS, terminal_width: int | None = None
) -> Iterable[str]:
    """
    Yield the lines of the text report.

    Args:
        report: The report.
        max_fields: Number of fields with listed differences.
        terminal_width: Maximum width of lines; None if the output is not a terminal.
    """
    return text_form.text_lines(replay_text(report, max_fields), terminal_width)


def html_lines(report: Results, max_differences: int = MAX_DIFFERENCES) -> Iterable[str]:
    """Yield the lines of a page with so many differences."""
    return html_form.html_lines(replay_page(report, max_differences))


def junit_lines(report: Results) -> Iterable[str]:
    """Yield the lines of a file for test runners."""
    return junit_form.junit_lines(replay_suite(report))


def ndjson_lines(report: Results) -> Iterable[str]:
    """Yield the report as lines of JSON; `section` gives the kind of each row."""
    return section_lines(sections_of(report))


WRITERS: Mapping[Form, Callable[[Results], Iterable[str]]] = {
    "text": text_lines,
    "ndjson": ndjson_lines,
    "junit": junit_lines,
    "html": html_lines,
}


def write_report(report: Results, file: str | Path) -> None:
    """
    Write a report in the format of the file's suffix.

    Raises:
        UsageError: The suffix of the file is unknown.
    """
    write_lines(WRITERS[form_of(file)](report), file)
