"""The report of a replay: its results, printed as text."""

from __future__ import annotations

from replay.report.results import Results
from replay.report.text_report import text_lines


class Report(Results):
    """The results of a replay; `str()` gives the text report."""

    def __str__(self) -> str:
        return "\n".join(text_lines(self))
