"""Base of the application: session, widgets, threads, and handling of errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Footer, Static

from browse.app.browse_settings import BrowseSettings
from browse.app.list_session import ListSession
from browse.app.pane_layout import MIN_HEIGHT, MIN_WIDTH, PaneLayout
from browse.app.status_line import StatusLine
from browse.detail.detail_events import FieldMarked
from browse.filtering.filter_bar import FilterBar
from browse.filtering.filter_history import FilterHistory
from browse.filtering.filter_words import FilterWords
from browse.listing.capture_access import CaptureAccess
from browse.listing.exchange_finder import WindowSearch
from browse.listing.exchange_loading import ExchangeLoading
from browse.listing.list_columns import CONNECTION_MODE, TimeForms
from browse.listing.palette import PaletteApp
from browse.listing.row_list import RowList
from browse.listing.traffic_line import TrafficLine
from browse.rows.traffic_bins import TrafficBins
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.tls_report import WAYS_TO_KEYS, unreadable_tls, without_kafka
from dissector.view.text.tree_node import TreeNode

POLL_S = 0.1
"""Interval at which the screen collects the results of threads."""
_THEME_OF_16_COLORS = "ansi-dark"
_TRAFFIC_HEIGHT = 16
"""Least height of the screen for the line of traffic."""
_PATIENCE_S = 0.04
"""Delay before the details of a chosen row are shown, to keep scrolling fast."""


class DetailWidget(Protocol):
    """The panes beside the list."""

    def show(
        self,
        exchange: Exchange | None,
        record: Mapping[str, Any] | None = None,
        row_node: TreeNode | None = None,
    ) -> None:
        """Show an exchange, one of its records, and the node of another row; None clears."""

    def show_record(self, record: Mapping[str, Any]) -> None:
        """Show another record of the same exchange."""


def run_in_thread(work: Callable[[], None]) -> Thread:
    """Run a function in a thread, with the current message definitions."""
    thread = Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    return thread


class BrowseBase(PaletteApp):
    """
    The screen without key actions.

    Attributes:
        session: State of the list.
        settings: Remembered settings.
        failure: The error that ended the application.
        times: Form of times.
        bar: Filter bar.
        traffic: The line of traffic over time.
        rows: The list.
        panes: The list and the details.
        status: Status line.
        details_number: Number of the exchange in the details; None without one.
    """

    CSS: ClassVar[str] = """
    #too-small { display: none; }
    #crumbs { height: 1; background: $panel; color: $text-accent; display: none; }
    #crumbs.-following { display: block; }
    Screen.-too-small > * { display: none; }
    Screen.-too-small > #too-small { display: block; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#rows, ModalScreen *"

    def __init__(
        self,
        access: CaptureAccess,
        loading: ExchangeLoading,
        details: Widget | None = None,
        *,
        filter_text: str = "",
        settings_file: Path | None = None,
    ) -> None:
        """
        Create the screen of a capture.

        `settings_file` stores the settings; None disables them.
        """
        super().__init__()
        self.failure: Exception | None = None
        self._settings_file = settings_file
        self.settings = BrowseSettings.load(settings_file) if settings_file else BrowseSettings()
        self.session = ListSession(access, loading, run_in_thread)
        self.times = TimeForms(self.settings.times, self.session.begin_ns)
        self._details = details
        self._initial_filter = filter_text
        self._words = FilterWords()
        self._prepares_words = False
        self.bar = FilterBar(self._suggest, FilterHistory(self.settings.filters), id="filter-bar")
        mode = self.session.mode
        self.rows = RowList(self.session.shown, mode, self.times, id="rows")
        self.rows.info = self.session.info
        self.rows.columns = self.columns_of(mode.name, mode.columns) or mode.shown
        self.traffic = TrafficLine(TrafficBins(self.session.loading.parts), id="traffic")
        self.panes = PaneLayout(self.rows, details, self.settings)
        self.status = StatusLine(id="status")
        self._window_search: WindowSearch | None = None
        self._wanted: int | None = None
        self.details_number: int | None = -1
        self._details_row: tuple[str, int | None] | None = None
        self._explained = False
        self._marked_field = ""
        self._banner = ""

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static("", id="crumbs", markup=False)
        yield self.bar
        yield self.traffic
        yield self.panes
        yield self.status
        yield Footer(show_command_palette=False)
        small = f"the terminal is too small: {MIN_WIDTH} x {MIN_HEIGHT} at least"
        yield Static(small, id="too-small", markup=False)

    def on_mount(self) -> None:
        """Start reading the capture."""
        self.title = "kafkashark"
        if self.settings.theme in self.available_themes:
            self.theme = self.settings.theme
        if self._has_16_colors and not self.theme.startswith("ansi-"):
            self.theme = _THEME_OF_16_COLORS
        self.rows.is_following = self.session.access.is_live
        self.rows.focus()
        # The first rows are painted before the rest is read: the thread would delay them.
        self.call_after_refresh(run_in_thread, self.session.loading.load)
        self.set_interval(POLL_S, self.take_in)
        if self._initial_filter:
            self.apply_filter(self._initial_filter)
        self.take_in()

    @property
    def _has_16_colors(self) -> bool:
        return self.console.color_system == "standard" and not self.is_headless

    def columns_of(self, mode: str, known: tuple[str, ...]) -> list[str]:
        """Return the remembered columns that a mode has."""
        return [name for name in self.settings.columns.get(mode, ()) if name in known]

    def apply_filter(self, text: str) -> None:
        """Apply a valid filter, and show it in the bar."""
        self.bar.applied = text
        self.bar.set_text(text)
        self.session.filter_by(text)
        self.list_changed()

    def list_changed(self) -> None:
        """Replace the rows of the list by those of the session."""
        rows = self.rows
        if rows.mode is self.session.mode:
            rows.shown = self.session.shown
            rows.rows_changed()
        else:
            mode = self.session.mode
            columns = self.columns_of(mode.name, mode.columns) or mode.shown
            rows.show_mode(self.session.shown, mode, columns)
        crumbs = self.query_one("#crumbs", Static)
        titles = [each.title for each in self.session.crumbs]
        crumbs.set_class(bool(titles or self._banner), "-following")
        crumbs.update(" > ".join(["all", *titles]) if titles else self._banner)
        self.show_status()

    def show_notice(self, notice: str) -> None:
        """Show a notice in the status line."""
        self.status.show_notice(notice)
        self.show_status()

    def show_status(self) -> None:
        """Update the status line."""
        in_details = self._details is not None and self._details.has_focus_within
        self.status.field = self._marked_field if in_details else ""
        self.status.show(self.session, self.rows.cursor)

    @on(FieldMarked)
    def _on_field_marked(self, event: FieldMarked) -> None:
        self._marked_field = event.text
        self.show_status()

    def on_descendant_focus(self) -> None:
        """Show the chosen field while its pane has the focus."""
        self.show_status()

    def on_key(self, event: events.Key) -> None:
        """Clear the notice."""
        self.status.notice = ""

    def on_resize(self, event: events.Resize) -> None:
        """Show a message if the terminal is too small."""
        is_small = event.size.width < MIN_WIDTH or event.size.height < MIN_HEIGHT
        self.screen_stack[0].set_class(is_small, "-too-small")
        self.traffic.display = event.size.height >= _TRAFFIC_HEIGHT and not is_small

    @on(RowList.Chosen)
    def _on_chosen(self, event: RowList.Chosen) -> None:
        self._wanted = event.number
        self.show_status()
        self.set_timer(_PATIENCE_S, self._show_wanted)

    def _show_wanted(self) -> None:
        """Show the details of the chosen row; read the capture again if they are not cached."""
        if self._details is None:
            return
        number = None
        if self._wanted is not None and self._wanted < len(self.session.shown.parts):
            number = self.session.exchange_number(self._wanted)
        details: DetailWidget = self._details  # type: ignore[assignment]
        record = self._wanted_record()
        has_node = self.session.mode.name in ("connections", "events")
        row = (self.session.mode.name, self._wanted) if has_node else None
        if number == self.details_number and row == self._details_row:
            if record is not None:
                details.show_record(record)
            return
        exchange = None if number is None else self.session.loading.finder.exchange(number)
        if number is None or exchange is not None:
            self.details_number, self._details_row = number, row
            details.show(exchange, record, self._row_node())
            return
        search = self._window_search
        if search is None or search.number != number:
            if search is not None:
                search.cancel()
            self._window_search = WindowSearch(
                self.session.access, self.session.loading.finder, number
            )
            run_in_thread(self._window_search.search)

    def show_details_again(self) -> None:
        """Show the details of the chosen row anew, after a change of what they have."""
        self.details_number = -1
        self._show_wanted()

    def _row_node(self) -> TreeNode | None:
        """Return the node of the chosen row, if it is a connection or an event."""
        from browse.detail.row_nodes import connection_node, event_node

        parts, name = self.session.shown.parts, self.session.mode.name
        if name not in ("connections", "events") or self._wanted is None:
            return None
        if self._wanted >= len(parts):
            return None
        row = parts.row(self._wanted)
        if name == "events":
            return event_node(row)
        return connection_node(row, self.session.apis_of(row["connection"]))

    def _wanted_record(self) -> Mapping[str, Any] | None:
        """Return the chosen row, if the list shows records."""
        shown = self.session.shown.parts
        if self.session.mode.name != "records" or self._wanted is None:
            return None
        return shown.row(self._wanted) if self._wanted < len(shown) else None

    @property
    def chosen_exchange(self) -> Exchange | None:
        """The exchange of the chosen row; None without one, or while it is being read."""
        row = self.rows.chosen
        number = None if row is None else self.session.exchange_number(row)
        return None if number is None else self.session.loading.finder.exchange(number)

    def prepare_words(self) -> None:
        """List names for completion, once."""
        if not self._prepares_words:
            self._prepares_words = True
            run_in_thread(self._words.prepare)

    def _suggest(self, text: str) -> list[str]:
        records = self.session.mode.name == "records"
        return self._words.suggestions(text, self.session.loading.parts, records=records)

    def take_in(self) -> None:
        """Collect the results of threads."""
        session = self.session
        self.times.begin_ns = session.begin_ns
        self.traffic.take_in(session.begin_ns)
        if session.poll():
            if self.rows.shown is session.shown:
                self.rows.rows_came()
            else:
                self.list_changed()
        search = self._window_search
        if search is not None and search.is_done:
            self._window_search = None
            if not search.failure:
                self._show_wanted()
                self.rows.repaint()
        self.show_status()
        if session.loading.is_done and not self._explained:
            self._explained = True
            self._explain()

    def _explain(self) -> None:
        """Exit if the capture has no rows; list the connections if only keys are missing."""
        loading = self.session.loading
        reading = loading.source.capture.reading
        if len(loading.parts) or loading.is_cancelled:
            return
        if loading.failure:
            self.exit()
        elif reading is not None and (text := unreadable_tls(reading)):
            self._banner = f"{text.removesuffix(f': {WAYS_TO_KEYS}')}: K adds a key log"
            self.session.show_mode(CONNECTION_MODE)
            self.list_changed()
        elif reading is not None and (text := without_kafka(reading)):
            self.exit(text)

    def _handle_exception(self, error: Exception) -> None:
        """Exit without a traceback; the command reports the error in one line."""
        self.failure = self.failure or error
        if self.is_headless:
            super()._handle_exception(error)
        else:
            self._return_code = 1
            self._close_messages_no_wait()

    def on_unmount(self) -> None:
        """End the threads, and save the settings."""
        self.session.close()
        if self._window_search is not None:
            self._window_search.cancel()
        self.settings.times = self.times.style
        if not self._has_16_colors:
            self.settings.theme = self.theme
        self.settings.filters = self.bar.history.texts
        if self._settings_file is not None:
            self.settings.save(self._settings_file)
