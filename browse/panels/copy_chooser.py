"""The dialog for copying the chosen row, with a preview."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from browse.panels.line_list import LineList
from browse.panels.panel import Panel
from dissector.view.text.escape import escaped

_PREVIEW_LINES = 200


class CopyChooser(Panel[str]):
    """Returns the text to copy."""

    DEFAULT_CSS = """
    CopyChooser LineList { height: 7; max-height: 40%; }
    CopyChooser VerticalScroll { height: 1fr; border-top: solid $panel; }
    """

    def __init__(self, forms: Sequence[tuple[str, Callable[[], str]]]) -> None:
        """Create the dialog; `forms` maps titles to functions that return texts."""
        super().__init__("Copy as", "Enter copies, Esc closes")
        self._forms = forms
        self._texts: dict[int, str] = {}
        self._list = LineList(len(forms), lambda row: Text(forms[row][0]))
        self._preview = Static()

    def contents(self) -> Iterable[Widget]:
        """Return the forms and the preview."""
        yield self._list
        with VerticalScroll(can_focus=False):
            yield self._preview

    def on_mount(self) -> None:
        """Show the first form."""
        self._show(0)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Show another form."""
        event.stop()
        self._show(event.row)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Return the text of a form."""
        event.stop()
        self.dismiss(self._text(event.row))

    def _show(self, row: int) -> None:
        lines = self._text(row).split("\n") if self._forms else []
        more = len(lines) - _PREVIEW_LINES
        shown = [escaped(line.expandtabs()) for line in lines[:_PREVIEW_LINES]]
        shown += [f"... {more:,} more lines"] * (more > 0)
        self._preview.update(Text("\n".join(shown)))

    def _text(self, row: int) -> str:
        """Return the text of a form, created on first use."""
        if row not in self._texts:
            self._texts[row] = self._forms[row][1]()
        return self._texts[row]
