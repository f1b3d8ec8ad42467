"""The output formats of a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from conform.registry.verdict import Verdict
from conform.report.verdict_html import html_lines
from conform.report.verdict_junit import junit_lines
from conform.report.verdict_ndjson import ndjson_lines
from conform.report.verdict_sarif import sarif_lines
from conform.report.verdict_text import text_lines

FORMATTERS: Mapping[str, Callable[[Verdict, str], Iterator[str]]] = {
    "text": text_lines,
    "ndjson": ndjson_lines,
    "junit": junit_lines,
    "sarif": sarif_lines,
    "html": html_lines,
}
"""Name of the format -> function that writes a verdict and its subject."""
