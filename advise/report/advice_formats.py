"""A report of advice in each format."""

from __future__ import annotations

from advise.registry.advice_report import AdviceReport
from advise.report.advice_document import advice_document
from advise.report.advice_junit import advice_suite
from advise.report.advice_rows import advice_rows
from advise.report.advice_scan import advice_scan
from dissector.view.document.check_report import CheckReport


def advice_check(report: AdviceReport, subject: str) -> CheckReport:
    """Return what is reported of some captures."""
    return CheckReport(
        lambda is_page: advice_document(report, subject, is_page=is_page),
        lambda: advice_suite(report, subject),
        lambda: advice_rows(report, subject),
        lambda: advice_scan(report, subject),
    )
