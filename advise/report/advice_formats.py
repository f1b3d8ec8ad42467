"""The output formats of a report of advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from advise.registry.advice_report import AdviceReport
from advise.report.advice_document import advice_document
from advise.report.advice_junit import advice_suite
from advise.report.advice_ndjson import advice_rows
from advise.report.advice_sarif import advice_sarif
from dissector.view.document import html_form, junit_form, text_form


def _text(report: AdviceReport, subject: str) -> Iterator[str]:
    document = advice_document(report, subject, is_page=False)
    return text_form.text_lines(document, ends_with_headline=True)


def _html(report: AdviceReport, subject: str) -> Iterator[str]:
    return html_form.html_lines(advice_document(report, subject, is_page=True))


def _junit(report: AdviceReport, subject: str) -> Iterator[str]:
    return junit_form.junit_lines(advice_suite(report, subject))


ADVICE_FORMATS: Mapping[str, Callable[[AdviceReport, str], Iterator[str]]] = {
    "text": _text,
    "ndjson": advice_rows,
    "junit": _junit,
    "sarif": advice_sarif,
    "html": _html,
}
"""Name of the format -> function that writes a report and its subject."""
