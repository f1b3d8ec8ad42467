"""Keys for packets, marks, searches and following."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from browse.app.browse_base import BrowseBase, run_in_thread
from browse.app.choice_screen import ChoiceScreen
from browse.app.prompt_screen import LetterScreen, PromptScreen
from browse.filtering.filter_check import check
from browse.filtering.filter_run import FilterRun
from browse.listing.row_marks import LAST
from browse.listing.row_search import HELP, ByteSearch, CellSearch, Search, parse_search
from browse.rows.packet_lookup import place_of_packet
from dissector.engine.tables.exchange_table import Ints
from dissector.errors import UsageError

SearchRun: TypeAlias = CellSearch | ByteSearch | FilterRun


class SearchKeys(BrowseBase):
    """Actions of these keys."""

    _search: Search | None = None
    _found: Ints = np.zeros(0, np.int64)
    _search_run: SearchRun | None = None

    def action_go_to_packet(self) -> None:
        """Ask for a packet number, and go to its row."""

        def go(text: str | None) -> None:
            number = (text or "").strip().replace(",", "").replace("_", "")
            if not number:
                return
            if not number.isdecimal() or len(number) > 15:
                self.show_notice(f"{(text or '')[:40]!r} is not a packet number")
                return
            self.go_to_packet(int(number))

        self.push_screen(PromptScreen("packet:"), go)

    def go_to_packet(self, packet: int) -> None:
        """Go to the row of a packet, or to the next row."""
        found = place_of_packet(self.session.shown, self.session.mode.packets, packet)
        if not self.session.mode.packets or found is None:
            self.show_notice("no row has a packet number")
            return
        self.jump_to(found[0])
        if not found[1]:
            self.show_notice(f"packet {packet:,} has no row: the next row is chosen")

    def jump_to(self, place: int) -> None:
        """Choose a row; keep the previous place for `''`."""
        if (chosen := self.rows.chosen) is not None:
            self.rows.marks.set(LAST, chosen)
        self.rows.is_following = False
        self.rows.choose(place)

    def action_mark(self) -> None:
        """Ask for a letter, and set or remove this mark on the chosen row."""

        def mark(letter: str | None) -> None:
            chosen = self.rows.chosen
            if letter and letter.isalnum() and chosen is not None:
                self.rows.marks.set(letter, chosen)
                self.rows.repaint()

        self.push_screen(LetterScreen("mark with the letter:"), mark)

    def action_to_mark(self) -> None:
        """Ask for a letter, and go to the row with this mark."""

        def go(letter: str | None) -> None:
            if not letter:
                return
            row = self.rows.marks.row(letter)
            place = None if row is None else self.session.shown.place_of(row)
            if place is None:
                where = "no row has the mark" if row is None else "the filter hides the row of mark"
                self.show_notice(f"{where} {letter}")
            else:
                self.jump_to(place)

        marks = "".join(sorted(self.rows.marks.letters()))
        self.push_screen(
            LetterScreen(f"go to mark ({marks or 'none yet'}; ' is the last place):"), go
        )

    def action_search(self) -> None:
        """Prompt for a search."""

        def search(text: str | None) -> None:
            if text:
                self.search(text)

        before = self._search.text if self._search else ""
        self.push_screen(PromptScreen(HELP + ":", before), search)

    def search(self, text: str) -> None:
        """Search for text, bytes or a field; go to the first match after the chosen row."""
        try:
            search = parse_search(text)
        except UsageError as error:
            self.show_notice(str(error))
            return
        if self._search_run is not None:
            self._search_run.cancel()
            self._search_run = None
        self._search, self._found = search, np.zeros(0, np.int64)
        if search.in_cells is not None:
            parts, names = self.session.shown.parts, self.session.mode.columns
            self._start(CellSearch(self.session.access, parts, names, search.in_cells))
            return
        if self.session.mode.name != "exchanges":
            self.show_notice("bytes and fields are searched in the list of exchanges: key 1")
            return
        if search.in_bytes is not None:
            self._start(ByteSearch(self.session.access, search.in_bytes))
        else:
            verdict = check(search.filter)
            if verdict.filter is None:
                self.show_notice(f"invalid filter: {verdict.message or 'it is empty'}")
                return
            self._start(FilterRun(self.session.access, search.filter))

    def _start(self, run: SearchRun) -> None:
        self._search_run = run
        self.session.watch(run)
        run_in_thread(run.search)

    def take_in(self) -> None:
        """Collect the results of threads; go to the first match."""
        super().take_in()
        run = self._search_run
        if run is None:
            return
        is_done, has_none = run.is_done, not len(self._found)
        while run.found:
            self._found = np.concatenate([self._found, run.found.popleft()])
        if is_done:
            self._search_run = None
        if has_none and (len(self._found) or is_done):
            self.action_next_found(1)

    def action_next_found(self, direction: int) -> None:
        """Go to the next or previous match."""
        if self._search is None:
            self.show_notice("no search yet: Ctrl-F")
            return
        shown = self.session.shown.numbers()
        places = np.flatnonzero(np.isin(shown, self._found))
        if not len(places):
            self.show_notice(f"not found: {self._search.text}")
            return
        if direction > 0:
            at = int(np.searchsorted(places, self.rows.cursor, side="right")) % len(places)
        else:
            at = int(np.searchsorted(places, self.rows.cursor, side="left")) - 1
        self.jump_to(int(places[at]))
        self.show_notice(f"{at % len(places) + 1:,} of {len(places):,} found")

    def action_follow(self) -> None:
        """Offer values of the chosen exchange for following."""
        exchange = self.chosen_exchange
        if exchange is None:
            self.show_notice("the exchange is not read yet")
            return
        from browse.filtering.follow_choices import follow_choices

        choices = follow_choices(exchange)

        def follow(index: int | None) -> None:
            if index is not None:
                self.session.follow(*choices[index])
                self.list_changed()

        self.push_screen(ChoiceScreen("Follow", [each.title for each in choices]), follow)
