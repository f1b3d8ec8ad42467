"""Tables over the list, such as statistics: sorted by a column; a row becomes the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.widget import Widget
from textual.widgets import Static

from browse.listing.list_columns import Mode, TimeForms
from browse.listing.row_list import RowList
from browse.panels.panel import Panel
from browse.rows.row_parts import RowParts
from browse.rows.shown_rows import ShownRows
from dissector.cli.sorting import SortKey
from dissector.engine.tables.columns_of import columns_of

Row = Mapping[str, Any]

_HINT = "Enter filters to the row   s sorts by the column   1-9, Tab table   Esc"
_SHARE = "share"
_BAR = 12
"""Width of the bars of the column `share`."""


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table of the panel.

    Attributes:
        title: Its title.
        columns: Names of its columns, in order.
        rows: Its rows.
        filter_of: Returns a filter that passes the exchanges of a row; empty without one.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    filter_of: Callable[[Row], str] = lambda row: ""


def with_share(table: Table, measure: str) -> Table:
    """Return a table with bars that compare the values of a column."""
    most = max((row[measure] for row in table.rows), default=0) or 1
    rows = [{**row, _SHARE: "█" * round(_BAR * row[measure] / most) or "▏"} for row in table.rows]
    at = list(table.columns).index(measure) + 1
    columns = (*table.columns[:at], _SHARE, *table.columns[at:])
    return Table(table.title, columns, rows, table.filter_of)


class TablePanel(Panel[str]):
    """Some tables, one at a time; returns the filter of the chosen row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "use", "Filter to the row"),
        Binding("s", "sort", "Sort by the column"),
        Binding("tab", "turn(1)", "Next table", show=False),
        Binding("shift+tab", "turn(-1)", "Table before", show=False),
        *(Binding(str(number), f"table({number - 1})", show=False) for number in range(1, 10)),
    ]
    DEFAULT_CSS = """
    TablePanel .tables--titles { height: 1; color: $text-muted; }
    TablePanel RowList { height: 1fr; }
    """

    def __init__(self, title: str, tables: Sequence[Table], *, none: str = "nothing") -> None:
        """Create the panel; without rows in any table it says `none`."""
        super().__init__(title, _HINT)
        self._tables = [table for table in tables if table.rows]
        self._none = none
        self._at = 0
        self._titles = Static("", classes="tables--titles")
        shown, mode = _listed(self._tables[0] if self._tables else Table("", (), ()))
        self.rows = RowList(shown, mode, TimeForms(), id="table-rows")

    def contents(self) -> Iterable[Widget]:
        """Return the titles and the rows."""
        yield self._titles
        if self._tables:
            yield self.rows

    def on_mount(self) -> None:
        """Show the first table."""
        self._name_tables()
        if self._tables:
            self.rows.focus()

    def action_table(self, number: int) -> None:
        """Show another table."""
        if number < len(self._tables):
            self._at = number
            shown, mode = _listed(self._tables[number])
            self.rows.show_mode(shown, mode, mode.shown)
            self._name_tables()

    def action_turn(self, step: int) -> None:
        """Show the next table, or the one before."""
        if self._tables:
            self.action_table((self._at + step) % len(self._tables))

    def action_sort(self) -> None:
        """Sort by the chosen column: descending, ascending, then as it was."""
        if self._tables:
            self._sort_by(self.rows.columns[self.rows.column])

    def action_use(self) -> None:
        """Close the panel, and filter to the chosen row."""
        chosen = self.rows.chosen
        if not self._tables or chosen is None:
            return
        table = self._tables[self._at]
        if text := table.filter_of(table.rows[chosen]):
            self.dismiss(text)
        else:
            self.notify("no filter for this row", severity="warning")

    @on(RowList.HeadingClicked)
    def _on_heading(self, event: RowList.HeadingClicked) -> None:
        event.stop()
        self._sort_by(event.name)

    @on(RowList.Chosen)
    def _on_chosen(self, event: RowList.Chosen) -> None:
        event.stop()  # the rows of the list below are others

    @on(RowList.MenuAsked)
    def _on_menu(self, event: RowList.MenuAsked) -> None:
        event.stop()
        self.action_use()

    def on_click(self, event: Click) -> None:
        """Filter to a row by a second click."""
        if event.chain == 2 and event.widget is self.rows and event.y:
            self.action_use()

    def _sort_by(self, name: str) -> None:
        shown = self.rows.shown
        now = shown.sort
        if now is None or now.name != name:
            shown.sort_by(SortKey(name, True))
        else:
            shown.sort_by(SortKey(name, False) if now.descends else None)
        self.rows.rows_changed()

    def _name_tables(self) -> None:
        names = (
            Text(f"{number} {table.title} ({len(table.rows):,})", _title_style(number, self._at))
            for number, table in enumerate(self._tables, 1)
        )
        self._titles.update(Text("   ").join(names) if self._tables else Text(self._none))


def _title_style(number: int, at: int) -> str:
    return "bold reverse" if number == at + 1 else ""


def _listed(table: Table) -> tuple[ShownRows, Mode]:
    """Return the rows of a table as those of a list."""
    parts = RowParts()
    if table.rows:
        rows = [{name: row.get(name) for name in table.columns} for row in table.rows]
        parts.append(columns_of(rows))
    shown = ShownRows(parts)
    shown.update()
    columns = tuple(table.columns)
    return shown, Mode(table.title, columns, columns, (), (), "")
