"""A report of a command that checks something, in each format: text, JSON, JUnit, SARIF, HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dissector.view.document.content import Document
from dissector.view.document.html_form import html_lines
from dissector.view.document.junit_form import TestSuite, junit_lines
from dissector.view.document.sarif_form import Scan, sarif_lines
from dissector.view.document.text_form import text_lines
from dissector.view.text.value_text import json_text


@dataclass(frozen=True, slots=True)
class CheckReport:
    """
    What a report says; each part is made on request.

    Attributes:
        document: Its content; the argument: whether for a page, with all that was looked for.
        suite: Its test cases.
        rows: Its rows, each with its `section`.
        scan: Its results for scanners.
    """

    document: Callable[[bool], Document]
    suite: Callable[[], TestSuite]
    rows: Callable[[], Iterable[Mapping[str, Any]]]
    scan: Callable[[], Scan]

    def lines(self, form: str, *, is_coloured: bool = False) -> Iterator[str]:
        """Yield the lines of a format: `text`, `ndjson`, `junit`, `sarif` or `html`."""
        match form:
            case "text":
                document = self.document(False)
                return text_lines(document, ends_with_headline=True, is_coloured=is_coloured)
            case "ndjson":
                return (json_text(dict(row)) for row in self.rows())
            case "junit":
                return junit_lines(self.suite())
            case "sarif":
                return sarif_lines(self.scan())
            case _:
                return html_lines(self.document(True))
