"""A verdict in each format."""

from __future__ import annotations

from conform.registry.verdict import Verdict
from conform.report.verdict_document import verdict_document
from conform.report.verdict_junit import verdict_suite
from conform.report.verdict_rows import verdict_rows
from conform.report.verdict_scan import verdict_scan
from dissector.view.document.check_report import CheckReport


def verdict_check(verdict: Verdict, subject: str) -> CheckReport:
    """Return what is reported of some captures, or of a broker."""
    return CheckReport(
        lambda is_page: verdict_document(verdict, subject, is_page=is_page),
        lambda: verdict_suite(verdict, subject),
        lambda: verdict_rows(verdict, subject),
        lambda: verdict_scan(verdict, subject),
    )
