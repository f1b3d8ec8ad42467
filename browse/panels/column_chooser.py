"""The dialog for the columns of the list and their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget

from browse.panels.line_list import LineList
from browse.panels.panel import Panel
from dissector.view.text.escape import escaped


class ColumnChooser(Panel[tuple[str, ...]]):
    """Returns the names of the chosen columns in order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "Show or hide", priority=True),
        Binding("shift+up,K,less_than_sign", "shift(-1)", "Further to the left", priority=True),
        Binding(
            "shift+down,J,greater_than_sign", "shift(1)", "Further to the right", priority=True
        ),
        Binding("r", "reset", "As at first", priority=True),
    ]
    DEFAULT_CSS = """
    ColumnChooser > Vertical { max-width: 90; }
    """

    def __init__(
        self,
        chosen: Sequence[str],
        every: Sequence[tuple[str, str]],
        default: Sequence[str] = (),
    ) -> None:
        """
        Create the dialog.

        Args:
            chosen: Names of the shown columns, in order.
            every: Names and descriptions of all columns.
            default: Names of the default columns.
        """
        super().__init__("Columns", "Space shows or hides, < > moves, r resets, Enter, Esc")
        self._meanings = dict(every)
        self._default = tuple(default or chosen)
        self._order: list[str] = []
        self._chosen: set[str] = set()
        self._take(chosen)
        self._list = LineList(len(self._order), self._line)

    def contents(self) -> Iterable[Widget]:
        """Return the columns."""
        yield self._list

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Return the columns; the last column cannot be hidden."""
        event.stop()
        found = tuple(name for name in self._order if name in self._chosen)
        if found:
            self.dismiss(found)
        else:
            self.notify("choose a column", severity="warning")

    def action_switch(self) -> None:
        """Show or hide the column under the cursor."""
        self._chosen ^= {self._order[self._list.row]}
        self._list.refresh()

    def action_shift(self, step: int) -> None:
        """Move the column under the cursor."""
        at = self._list.row
        to = at + step
        if 0 <= to < len(self._order):
            self._order[at], self._order[to] = self._order[to], self._order[at]
            self._list.action_move(step)

    def action_reset(self) -> None:
        """Restore the default columns."""
        self._take(self._default)
        self._list.show(len(self._order), self._line)

    def _take(self, chosen: Sequence[str]) -> None:
        self._order = list(dict.fromkeys((*chosen, *self._meanings)))
        self._chosen = set(chosen)

    def _line(self, row: int) -> Text:
        name = self._order[row]
        mark = "[x]" if name in self._chosen else "[ ]"
        meaning = self._meanings.get(name, "a field")
        return Text.assemble(
            (f"{mark} {escaped(name):<24} ", "bold" if name in self._chosen else ""),
            (escaped(meaning), "dim"),
            no_wrap=True,
        )
