"""
Keys for panels over the list: keys, statistics, groups, conversations.

Panels are imported on first use, to open the screen sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from textual.app import App
from textual.widget import Widget

from browse.app.browse_base import run_in_thread
from browse.app.output_keys import OutputKeys
from browse.detail import DetailPanes
from browse.detail.byte_view import ByteView
from browse.detail.field_tree import FieldTree
from browse.filtering.filter_bar import FilterInput
from browse.filtering.filter_texts import joined
from browse.listing.list_columns import MODES
from browse.listing.row_info import INFO, MEANING
from browse.listing.row_list import RowList

if TYPE_CHECKING:
    from browse.listing.group_report import GroupReport

MOST_LINES = 10_000
"""Limit of lines in a panel."""
_CATALOGUES = {
    "exchanges": "pairs",
    "messages": "dissect",
    "records": "records",
    "connections": "streams",
}


class PanelKeys(OutputKeys):
    """Actions of these keys."""

    _groups: GroupReport | None = None

    def action_help(self) -> None:
        """Show all keys."""
        from browse.panels.help_panel import HelpPanel, key_group, task_groups

        panes: dict[str, tuple[type[Widget], ...]] = {
            "In the list": (RowList,),
            "In the filter bar": (FilterInput,),
            "In the fields": (FieldTree, DetailPanes),
            "In the bytes": (ByteView,),
        }
        app = cast("App[object]", self)
        groups = task_groups(app, type(self))
        groups += [key_group(app, title, *owners) for title, owners in panes.items()]
        self.push_screen(HelpPanel(groups))

    def action_stats(self) -> None:
        """Show statistics of the shown exchanges."""
        from browse.panels.summary_tables import STATISTICS, stats_panel
        from dissector.summary.statistics import Statistics, health

        statistics, session = Statistics(STATISTICS), self.session
        for columns in session.exchanges.columns():
            statistics.add(columns)
        reading = session.access.first.capture.reading
        problems = len(session.loading.problems) + statistics.problems
        panel = stats_panel(statistics.sections(), health(reading, problems))
        self.push_screen(panel, self._use_row)

    def _use_row(self, text: str | None) -> None:
        """Filter to the exchanges of a row of a table, within the current filter."""
        if text:
            self.show_exchanges()
            self.apply_filter(joined([self.session.text, text]))

    def action_groups(self) -> None:
        """Read the groups of the capture, and show them."""
        from browse.listing.group_report import GroupReport

        self._groups = GroupReport(self.session.access, self.session.filter_text)
        self.session.watch(self._groups)
        run_in_thread(self._groups.read)

    def take_in(self) -> None:
        """Collect the results of threads; show groups once they are read."""
        super().take_in()
        groups = self._groups
        if groups is None or not groups.is_done:
            return
        self._groups = None
        if groups.failure:
            self.show_notice(groups.failure)
        elif not groups.is_cancelled:
            from browse.panels.summary_tables import groups_panel

            self.push_screen(groups_panel(groups.sections), self._use_row)

    def action_conversation(self) -> None:
        """Show all messages on the connection of the chosen row; Enter chooses one."""
        from browse.panels.conversation_panel import ConversationPanel

        number = self._chosen_number()
        if number is None:
            self.show_notice("the row has no exchange")
            return
        parts = self.session.loading.parts
        connection = int(parts.numbers("connection")[number])
        rows = np.flatnonzero(parts.numbers("connection") == connection).tolist()[:MOST_LINES]
        ends = " and ".join(parts.cells(number, ("client", "broker")))

        def go(exchange: int | None) -> None:
            if exchange is not None:
                self._go_to_exchange(rows[exchange])

        found = [parts.row(row) for row in rows]
        self.push_screen(ConversationPanel(ends, found, self.session.begin_ns), go)

    def action_columns(self) -> None:
        """Ask for the columns of the list, and their order."""
        from browse.panels.column_chooser import ColumnChooser
        from dissector.cli.presentation.listing import CATALOGUES

        mode = self.session.mode
        infos = CATALOGUES.get(_CATALOGUES.get(mode.name, ""), ())
        meanings = {each.name: each.meaning for each in infos} | {INFO: MEANING}
        names = dict.fromkeys([*mode.columns, *self.rows.columns])
        every = [(name, meanings.get(name, "")) for name in names]

        def use(columns: tuple[str, ...] | None) -> None:
            if columns:
                self.use_columns(list(columns))

        self.push_screen(ColumnChooser(tuple(self.rows.columns), every, mode.shown), use)

    def use_columns(self, names: list[str]) -> None:
        """Show these columns, and remember them."""
        self.settings.columns[self.session.mode.name] = names
        self.rows.columns = tuple(names)
        self.rows.rows_changed()

    def _chosen_number(self) -> int | None:
        row = self.rows.chosen
        return None if row is None else self.session.exchange_number(row)

    def _go_to_exchange(self, number: int | None) -> None:
        """Go to an exchange in the list of exchanges; remove filters that hide it."""
        if number is None:
            return
        self.show_exchanges()
        place = self.session.shown.place_of(number)
        if place is None:
            self.show_notice("the filter hides the exchange")
        else:
            self.jump_to(place)

    def show_exchanges(self) -> None:
        """Switch to the list of exchanges."""
        if self.session.mode is not MODES[0]:
            self.session.show_mode(MODES[0])
            self.list_changed()
