"""A panel with the lines of a report, fitted to the width."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.text import Text
from textual.events import Resize
from textual.widget import Widget

from browse.panels.line_list import LineList
from browse.panels.panel import Panel

LinesOf = Callable[[int], Sequence[str]]
"""Returns the lines of a report for a width."""


class ReportPanel(Panel[int]):
    """Lines of a report."""

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
