"""Panels with tables, such as statistics and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text
from textual.events import Resize
from textual.widget import Widget

from browse.panels.line_list import LineList
from browse.panels.panel import Panel
from dissector.cli.stats import PRIORITY
from dissector.summary.groups_reader import SECTIONS as GROUPS
from dissector.view.tables.column_fitting import Layout
from dissector.view.tables.statistics_report import report, section_lines

LinesOf = Callable[[int], Sequence[str]]
"""Returns the lines of a report for a width."""


class ReportPanel(Panel[int]):
    """A report with tables fitted to the width."""

    def __init__(self, title: str, lines_of: LinesOf, *, hint: str = "Esc closes") -> None:
        """Create the panel; `lines_of` returns escaped lines."""
        super().__init__(title, hint)
        self._lines_of = lines_of
        self._list = LineList()

    def contents(self) -> Iterable[Widget]:
        """Return the lines."""
        yield self._list

    def on_resize(self, _: Resize) -> None:
        """Fit the tables to the new width."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        lines = self._lines_of(max(self._list.scrollable_content_region.width, 20))
        self._list.show(len(lines), lambda row: Text(lines[row], no_wrap=True))


def stats_panel(
    sections: Mapping[str, Sequence[Mapping[str, Any]]], health: Mapping[str, int]
) -> ReportPanel:
    """Return a panel with the output of `kafkashark stats`: rows by section, and counters."""
    layout = Layout(PRIORITY)
    return ReportPanel(
        "Statistics",
        lambda width: report(sections, health, terminal_width=width, layout=layout),
    )


def groups_panel(sections: Mapping[str, Sequence[Mapping[str, Any]]]) -> ReportPanel:
    """Return a panel with the output of `kafkashark groups`: rows by section."""

    def lines(width: int) -> Sequence[str]:
        return section_lines(sections, GROUPS, width) or ["no group in the capture"]

    return ReportPanel("Groups", lines)
