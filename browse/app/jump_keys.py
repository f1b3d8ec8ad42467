"""Keys for jumps to what belongs together, the menu of a row, and key logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from textual import on

from browse.app.choice_screen import ChoiceScreen
from browse.app.prompt_screen import PromptScreen
from browse.app.search_keys import SearchKeys
from browse.filtering.filter_check import check
from browse.filtering.filter_texts import joined
from browse.listing.list_columns import is_time
from browse.listing.row_list import RowList
from browse.listing.traffic_line import TrafficLine
from browse.rows.exchange_messages import EXCHANGE
from dissector.engine.tables.exchange_table import Ints

_FAULTS = {
    "errors": bool,
    "problems": bool,
    "error": lambda value: value not in (None, "NONE"),
    "status": lambda value: value in ("unanswered", "orphan"),
}
"""Columns, and the values of rows with something wrong."""
_SECONDS, _TIME = "request_relative_s", "time "
"""Column of times from the first packet on, and the begin of the titles of chosen times."""
_LISTS = {"errors": "error", "topics": "topic"}
"""Columns of lists, and the names in filters for one of their values."""


class AddedKeys(NamedTuple):
    """
    The screen ends to be opened again with a key log.

    Attributes:
        path: The key log.
        filter_text: The filter of the list.
    """

    path: str
    filter_text: str


class JumpKeys(SearchKeys):
    """Actions of these keys."""

    def action_next_fault(self) -> None:
        """Go to the next row with an error, with damage, or without a counterpart."""
        shown = self.session.shown
        is_bad = np.zeros(len(shown.parts), np.bool_)
        for name, test in _FAULTS.items():
            if name in self.session.mode.columns:
                is_bad |= shown.rows_where(name, test)
        self._go_to_next(np.flatnonzero(is_bad[shown.numbers()]), 1, "row with an error")

    def action_same_connection(self, direction: int) -> None:
        """Go to the next or previous row of the same connection."""
        shown, chosen = self.session.shown, self.rows.chosen
        if chosen is None or self.session.mode.name not in ("exchanges", "messages", "records"):
            self.show_notice("rows of this list belong to no connection")
            return
        numbers = shown.parts.numbers("connection")
        places = np.flatnonzero(numbers[shown.numbers()] == numbers[chosen])
        self._go_to_next(places, direction, f"other row of connection {numbers[chosen]}")

    def action_counterpart(self) -> None:
        """Go from a request to its response, or back."""
        shown, chosen = self.session.shown, self.rows.chosen
        if self.session.mode.name != "messages" or chosen is None:
            self.show_notice("requests and responses have rows of their own in the list 2")
            return
        exchanges = shown.parts.numbers(EXCHANGE)
        places = np.flatnonzero(exchanges[shown.numbers()] == exchanges[chosen])
        self._go_to_next(places, 1, "counterpart in the list")

    def action_choose_time(self) -> None:
        """Go to the line of traffic, to choose a time."""
        self.screen.set_focus(self.traffic)

    @on(TrafficLine.Selected)
    def _on_time_selected(self, event: TrafficLine.Selected) -> None:
        """Follow the exchanges of a time, instead of another time."""
        crumbs = self.session.crumbs
        if crumbs and crumbs[-1].title.startswith(_TIME):
            self.session.back()
        tests = f"{_SECONDS} >= {event.begin_s:.9f} and {_SECONDS} < {event.end_s:.9f}"
        self.session.follow(f"{_TIME}{event.begin_s:.6g}-{event.end_s:.6g} s", tests)
        self.list_changed()
        self.screen.set_focus(self.rows)

    @on(TrafficLine.Left)
    def _on_time_left(self) -> None:
        self.screen.set_focus(self.rows)

    def _go_to_next(self, places: Ints, direction: int, what: str) -> None:
        """Go to the next of some places in a direction, around the end of the list."""
        places = places[places != self.rows.cursor]
        if not len(places):
            self.show_notice(f"no {what}")
            return
        at = int(np.searchsorted(places, self.rows.cursor)) - (direction < 0)
        self.jump_to(int(places[at % len(places)]))

    @on(RowList.MenuAsked)
    def _on_menu(self, event: RowList.MenuAsked) -> None:
        """Offer what can be done with a row and its cell, as a right click does."""
        choices: dict[str, Any] = {}
        if text := self._cell_filter(event.name):
            choices[f"Filter: {text}"] = lambda: self.bar.edit(text)
            choices["And with the filter"] = lambda: self.bar.edit(joined([self.bar.applied, text]))
            choices["And not"] = lambda: self.bar.edit(joined([self.bar.applied, f"not ({text})"]))
        choices["Follow ..."] = self.action_follow
        choices["Conversation of the connection"] = self.run_conversation
        choices["Next in the connection"] = lambda: self.action_same_connection(1)
        choices["Copy ..."] = self.run_copy
        titles = list(choices)

        def act(index: int | None) -> None:
            if index is not None:
                choices[titles[index]]()

        self.push_screen(ChoiceScreen("This row", titles), act)

    def run_conversation(self) -> None:
        """Show the conversation of the connection."""
        self.call_later(self.run_action, "conversation")

    def run_copy(self) -> None:
        """Offer forms of the row for the clipboard."""
        self.call_later(self.run_action, "copy")

    def _cell_filter(self, name: str | None) -> str:
        """Return a filter for a cell of the chosen row; empty if there is none."""
        chosen = self.rows.chosen
        if name is None or chosen is None or is_time(name):
            return ""
        value = self.session.shown.parts.value(chosen, name)
        if isinstance(value, list):
            name, value = _LISTS.get(name, name), value[0] if value else None
        if value is None or isinstance(value, bytes | float | dict | list):
            return ""
        quoted = str(value).replace("\\", "\\\\").replace('"', '\\"')
        text = f'{name} == "{quoted}"' if isinstance(value, str) else f"{name} == {value}".lower()
        records = self.session.mode.name == "records"
        return text if check(text, records=records).state == "valid" else ""

    def action_add_keys(self) -> None:
        """Ask for a key log, and read the capture again with it."""
        if self.is_web or self.session.access.is_live:
            self.show_notice("a key log is added to files only: --keylog")
            return

        def add(text: str | None) -> None:
            path = (text or "").strip()
            if path and not Path(path).expanduser().is_file():
                self.show_notice(f"{path[:60]}: no such file")
            elif path:
                self.exit(AddedKeys(str(Path(path).expanduser()), self.session.text))

        self.push_screen(PromptScreen("key log:"), add)
