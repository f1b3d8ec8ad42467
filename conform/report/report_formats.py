"""The output formats of a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from conform.registry.verdict import Verdict
from conform.report.verdict_document import verdict_document
from conform.report.verdict_junit import verdict_suite
from conform.report.verdict_ndjson import ndjson_lines
from conform.report.verdict_sarif import sarif_lines
from dissector.view.document import html_form, junit_form, text_form


def text_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the findings, then the reasons why cases were not judged, then the summary."""
    document = verdict_document(verdict, subject, is_page=False)
    return text_form.text_lines(document, ends_with_headline=True)


def html_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the lines of a page."""
    return html_form.html_lines(verdict_document(verdict, subject, is_page=True))


def junit_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the lines of a file for test runners."""
    return junit_form.junit_lines(verdict_suite(verdict, subject))


FORMATTERS: Mapping[str, Callable[[Verdict, str], Iterator[str]]] = {
    "text": text_lines,
    "ndjson": ndjson_lines,
    "junit": junit_lines,
    "sarif": sarif_lines,
    "html": html_lines,
}
"""Name of the format -> function that writes a verdict and its subject."""
