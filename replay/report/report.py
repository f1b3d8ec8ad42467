"""The report of a replay: its results, printed as text."""

from __future__ import annotations

from replay.report.headline import verdict_line
from replay.report.report_forms import text_lines
from replay.report.results import Results

_MAX_NOTEBOOK_DIFFERENCES = 50


class Report(Results):
    """The results of a replay; `str()` gives the text report."""

    def __repr__(self) -> str:
        return f"<Report {verdict_line(self)}>"

    def _repr_html_(self) -> str:
        from dissector.view.text.notebook import page_html
        from replay.report.report_forms import html_lines

        return page_html("Replay", html_lines(self, _MAX_NOTEBOOK_DIFFERENCES))

    def __str__(self) -> str:
        return "\n".join(text_lines(self))
