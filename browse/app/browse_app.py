"""The application with all its keys."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from browse.app.browse_base import run_in_thread
from browse.app.choice_screen import ChoiceScreen
from browse.app.expert_keys import ExpertKeys
from browse.detail import FieldChosen, FieldColumn, FieldMenu, PacketChosen
from browse.detail.field_tree import FieldTree
from browse.filtering.filter_bar import FilterBar
from browse.filtering.filter_check import check
from browse.filtering.filter_texts import joined
from browse.listing.list_columns import MODES
from browse.listing.row_list import RowList
from browse.rows.freed_memory import release_memory
from dissector.cli.sorting import SortKey

_QUESTIONS = ("filter", "go_to_packet", "mark", "to_mark", "search", "add_keys", "comment")
"""
Actions with prompts. Their keys block the next key, so that text typed ahead goes into the prompt.
"""


class BrowseApp(ExpertKeys):
    """The screen of `kafkashark browse`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Keys", key_display="?"),
        Binding("q,ctrl+q", "quit", "Quit", key_display="q"),
        Binding("slash", "filter", "Filter", priority=True, key_display="/"),
        Binding("1", "mode(0)", "Exchanges", show=False),
        Binding("2", "mode(1)", "Messages", show=False),
        Binding("3", "mode(2)", "Records", show=False),
        Binding("4", "mode(3)", "Connections", show=False),
        Binding("5", "mode(4)", "Events of the timeline", show=False),
        Binding("M", "choose_mode", "Mode"),
        Binding("s", "sort", "Sort", show=False),
        Binding("f", "follow", "Follow"),
        Binding("g", "go_to_packet", "Go to packet", priority=True, show=False),
        Binding("m", "mark", "Mark the row", priority=True, show=False),
        Binding(
            "apostrophe", "to_mark", "Go to a mark", priority=True, show=False, key_display="'"
        ),
        Binding("ctrl+f", "search", "Search", priority=True),
        Binding("n", "next_found(1)", "Next found", show=False),
        Binding("N", "next_found(-1)", "Found before", show=False),
        Binding("y", "copy", "Copy"),
        Binding("e", "export", "Export"),
        Binding(
            "number_sign",
            "comment",
            "Comment on the packet",
            priority=True,
            show=False,
            key_display="#",
        ),
        Binding("t", "times", "Form of times", show=False),
        Binding("exclamation_mark", "expert", "What stands out", key_display="!"),
        Binding("S", "stats", "Statistics", show=False),
        Binding("R", "groups", "Groups", show=False),
        Binding("E", "next_fault", "Next error", show=False),
        Binding("full_stop", "same_connection(1)", "Next in the connection", show=False),
        Binding("comma", "same_connection(-1)", "Before in the connection", show=False),
        Binding("r", "counterpart", "Response, or its request", show=False),
        Binding("K", "add_keys", "Add a key log for TLS", priority=True, show=False),
        Binding("v", "conversation", "Conversation of the connection", show=False),
        Binding("w", "choose_time", "Choose a time", show=False),
        Binding("c", "columns", "Choose columns", show=False),
        Binding("T", "theme", "Colours", show=False),
        Binding("x", "hide_column", "Hide the column", show=False),
        Binding("less_than_sign", "shift_column(-1)", "Column to the left", show=False),
        Binding("greater_than_sign", "shift_column(1)", "Column to the right", show=False),
        Binding("tab", "focus_next", "Next pane", show=False),
        Binding("shift+tab", "focus_previous", "Pane before", show=False),
        Binding("vertical_line", "layout", "Arrange panes", show=False, key_display="|"),
        Binding("plus", "resize(1)", "More room", show=False, key_display="+"),
        Binding("minus", "resize(-1)", "Less room", show=False, key_display="-"),
        Binding("backslash", "fill", "Fill the screen", show=False, key_display="\\"),
        Binding("escape", "escape", "Cancel, or back", show=False),
    ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable list keys while a text input or another screen has the focus."""
        if action in _QUESTIONS:
            return len(self.screen_stack) == 1 and not isinstance(self.focused, Input)
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        """Focus the filter bar."""
        self.prepare_words()
        self.bar.records = self.session.mode.name == "records"
        self.bar.edit()

    @on(FilterBar.Applied)
    def _on_applied(self, event: FilterBar.Applied) -> None:
        self.apply_filter(event.text)
        self.screen.set_focus(self.rows)

    @on(FilterBar.Left)
    def _on_left(self) -> None:
        self.screen.set_focus(self.rows)

    def action_escape(self) -> None:
        """Cancel a search, return from following, or clear the filter."""
        if self.session.cancel():
            self.show_notice("cancelled: the list has the rows read so far")
        elif self.session.back():
            self.list_changed()
        elif self.session.text:
            self.apply_filter("")

    def action_mode(self, index: int) -> None:
        """Switch to another kind of rows."""
        mode = MODES[index]
        text = self.session.text
        if check(text, records=mode.name == "records").state not in ("empty", "valid"):
            self.show_notice(f"filter removed: {mode.name} lack its columns")
            self.session.text = ""
            self.bar.applied = ""
            self.bar.set_text("")
        self.bar.records = mode.name == "records"
        self.session.show_mode(mode)
        self.list_changed()
        run_in_thread(release_memory)
        self.screen.set_focus(self.rows)

    def action_choose_mode(self) -> None:
        """Offer the kinds of rows."""
        names = [f"{number}  {mode.name}" for number, mode in enumerate(MODES, 1)]

        def chosen(index: int | None) -> None:
            if index is not None:
                self.action_mode(index)

        self.push_screen(ChoiceScreen("What the list shows", names), chosen)

    def action_sort(self) -> None:
        """Sort by the chosen column: ascending, descending, then in capture order."""
        if self.rows.columns:
            self._sort_by(self.rows.columns[self.rows.column])

    @on(RowList.HeadingClicked)
    def _on_heading(self, event: RowList.HeadingClicked) -> None:
        self._sort_by(event.name)

    def _sort_by(self, name: str) -> None:
        shown = self.session.shown
        now = shown.sort
        if now is None or now.name != name:
            shown.sort_by(SortKey(name, False))
        else:
            shown.sort_by(None if now.descends else SortKey(name, True))
        self.rows.rows_changed()
        self.show_status()

    def action_times(self) -> None:
        """Go on to the next form of times."""
        self.show_notice(f"times: {self.times.next()}")
        self.rows.rows_changed()

    def action_theme(self) -> None:
        """Choose the colours; the screen has those of the highlighted name."""
        names, before = sorted(self.available_themes), self.theme

        def use(index: int | None) -> None:
            self.theme = before if index is None else names[index]

        self.push_screen(ChoiceScreen("Colours", names, names.index(before), use), use)

    def action_help_quit(self) -> None:
        """Answer Ctrl-C, which terminals use for copying, too."""
        self.show_notice("q quits")

    def action_hide_column(self) -> None:
        """Hide the chosen column."""
        names = list(self.rows.columns)
        if len(names) > 1:
            del names[self.rows.column]
            self.use_columns(names)

    def action_shift_column(self, count: int) -> None:
        """Move the chosen column to the left or right."""
        names, at = list(self.rows.columns), self.rows.column
        to = max(0, min(at + count, len(names) - 1))
        names.insert(to, names.pop(at))
        self.rows.column = to
        self.use_columns(names)

    def action_focus_next(self) -> None:
        """Focus the next pane, or the next part of a dialog."""
        self.screen.focus_next(self._tab_stops)

    def action_focus_previous(self) -> None:
        """Focus the previous pane, or the previous part of a dialog."""
        self.screen.focus_previous(self._tab_stops)

    @property
    def _tab_stops(self) -> str:
        """Return the panes for Tab, without the filter bar, where Tab completes."""
        return "PaneLayout *" if len(self.screen_stack) == 1 else "*"

    def action_layout(self) -> None:
        """Go on to the next arrangement of the panes."""
        self.panes.next_layout()

    def action_resize(self, steps: int) -> None:
        """Change the size of the focused pane."""
        self.panes.give_room(steps)

    def action_fill(self) -> None:
        """Maximise the focused pane, or restore all panes."""
        self.panes.toggle_fill()

    @on(FieldChosen)
    def _on_field_chosen(self, event: FieldChosen) -> None:
        self.use_field(event.text, event.how)

    @on(FieldColumn)
    def _on_field_column(self, event: FieldColumn) -> None:
        self.add_field_column(event.path)

    @on(PacketChosen)
    def _on_packet_chosen(self, event: PacketChosen) -> None:
        self.show_exchanges()
        self.go_to_packet(event.packet)
        self.screen.set_focus(self.rows)

    @on(FieldMenu)
    def _on_field_menu(self) -> None:
        """Offer what can be done with a field, as a right click does."""
        offered = [each for each in FieldTree.BINDINGS if isinstance(each, Binding) and each.show]
        titles = [f"{each.description}  ({self.get_key_display(each)})" for each in offered]

        def act(index: int | None) -> None:
            if index is not None:
                tree = self.query_one(FieldTree)
                tree.focus()
                tree.call_later(tree.run_action, offered[index].action)

        self.push_screen(ChoiceScreen("This field", titles), act)

    def use_field(self, text: str, how: str) -> None:
        """Join a field test with the current filter by `and`, `or`, `not`, or replace that."""
        now = self.bar.applied
        match how:
            case "not":
                new = joined([now, f"not ({text})"])
            case "or" if now:
                new = f"({now}) or ({text})"
            case "and":
                new = joined([now, text])
            case _:
                new = text
        self.bar.edit(new)
