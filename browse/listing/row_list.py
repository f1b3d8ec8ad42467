"""The list widget; renders only visible lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from browse.listing import row_colors
from browse.listing.list_columns import (
    SAMPLE_ROWS,
    ColumnWidths,
    Mode,
    TimeForms,
    cell_text,
    is_time,
    title,
)
from browse.listing.row_info import INFO
from browse.listing.row_marks import RowMarks
from browse.rows.shown_rows import ShownRows

_HEADER = 1
_RIGHT = 3
_GUTTER = 3
"""Width of the left margin: a mark, a sign, a space."""


class RowList(ScrollView, can_focus=True):
    """
    The list of rows, with a cursor.

    Attributes:
        shown: The rows.
        mode: Kind of rows.
        columns: Names of the columns, in order.
        times: Form of times.
        marks: Marked rows.
        cursor: Place of the chosen row.
        column: Index of the chosen column.
        is_following: Whether the cursor stays on the last row as rows are added.
        info: Returns the text of the column `info` of a row by its number.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home", "first", "First row", show=False),
        Binding("end,G", "last", "Last row; follow the capture", show=False),
        Binding("left,h", "column(-1)", "Column to the left", show=False),
        Binding("right,l", "column(1)", "Column to the right", show=False),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "row-list--header",
        "row-list--cursor",
        "row-list--column",
        *(f"row-list--{each}" for each in row_colors.STYLES),
    }

    DEFAULT_CSS = """
    RowList { background: $surface; color: $foreground; overflow-x: auto; overflow-y: scroll; }
    RowList > .row-list--header { background: $panel; color: $foreground; text-style: bold; }
    RowList > .row-list--column { background: $primary; color: $text; text-style: bold; }
    RowList > .row-list--cursor {
        background: $panel-lighten-2; color: $foreground; text-style: bold;
    }
    RowList:focus > .row-list--cursor { background: $primary; color: $text; text-style: bold; }
    RowList > .row-list--error { color: $row-error; }
    RowList > .row-list--damaged { color: $row-damaged; }
    RowList > .row-list--incomplete { color: $row-incomplete; }
    RowList > .row-list--data { color: $foreground; }
    RowList > .row-list--metadata { color: $row-metadata; }
    RowList > .row-list--groups { color: $row-groups; }
    RowList > .row-list--transactions { color: $row-transactions; }
    RowList > .row-list--security { color: $row-security; }
    RowList > .row-list--admin { color: $row-admin; }
    RowList > .row-list--cluster { color: $row-admin; }
    RowList > .row-list--other { color: $foreground; }
    RowList:nocolor > .row-list--error { color: $foreground; text-style: bold; }
    RowList:nocolor > .row-list--damaged { color: $foreground; text-style: bold; }
    RowList:nocolor > .row-list--incomplete { color: $foreground; text-style: bold; }
    """

    class Chosen(Message):
        """Another row is chosen; `number` is its number, None without rows."""

        def __init__(self, number: int | None) -> None:
            super().__init__()
            self.number = number

    class HeadingClicked(Message):
        """The user clicked the heading of a column."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class MenuAsked(Message):
        """A right click on a row, which is chosen now; `name` is the column under the mouse."""

        def __init__(self, name: str | None) -> None:
            super().__init__()
            self.name = name

    def __init__(self, shown: ShownRows, mode: Mode, times: TimeForms, *, id: str) -> None:
        super().__init__(id=id)
        self.shown = shown
        self.mode = mode
        self.columns: Sequence[str] = mode.shown
        self.times = times
        self.marks = RowMarks()
        self.cursor = 0
        self.column = 0
        self.is_following = False
        self.info: Callable[[int], str] = lambda number: ""
        self._widths = ColumnWidths(self.columns, ())
        self._fitted = 0
        self._announced: int | None = -1
        self._number: int | None = None
        self._strips: LRUCache[tuple[int, int], Strip] = LRUCache(1000)

    def on_mount(self) -> None:
        """Render the visible rows."""
        self.rows_changed()

    @property
    def chosen(self) -> int | None:
        """The number of the row under the cursor; None without rows."""
        count = len(self.shown)
        return self.shown.number(min(self.cursor, count - 1)) if count else None

    def show_mode(self, shown: ShownRows, mode: Mode, columns: Sequence[str]) -> None:
        """Show other rows."""
        self.shown, self.mode, self.columns = shown, mode, tuple(columns)
        self.marks = RowMarks()
        self.cursor = self.column = 0
        self._number = None
        self.rows_changed()

    def rows_changed(self) -> None:
        """Update the list after a change of rows or columns; the chosen row stays."""
        self._fitted = 0
        self.rows_came()
        self._reveal(center=True)

    def rows_came(self) -> None:
        """Update the list after rows were added."""
        count = len(self.shown)
        if self.is_following:
            self.cursor = count - 1
        elif self._number is not None and count:
            self.cursor = self.shown.nearest(self._number)
        self.cursor = max(0, min(self.cursor, count - 1))
        if count >= 4 * self._fitted or not self._holds_last():
            self._fit()
        self._strips.clear()
        self.virtual_size = Size(self._widths.total + _GUTTER, count + _HEADER)
        if self.is_following:
            self._reveal()
        if self.is_following or self._number is None:
            self._choose()
        self._announce()
        self.refresh()

    def on_resize(self) -> None:
        """Fit the columns into the new width."""
        self.repaint()

    def repaint(self) -> None:
        """Render again after a change of marks or of the form of times."""
        self._strips.clear()
        self._fit()
        self.refresh()

    def choose(self, place: int) -> None:
        """Choose the row at a place, or the nearest row."""
        self.cursor = max(0, min(place, len(self.shown) - 1))
        self._choose()
        self._reveal()
        self._announce()
        self.refresh()

    def _choose(self) -> None:
        """Remember the chosen row, to restore it when a filter is removed."""
        if len(self.shown):
            self._number = self.shown.number(self.cursor)

    def _announce(self) -> None:
        """Post the chosen row if it has changed."""
        if self.chosen != self._announced:
            self._announced = self.chosen
            self.post_message(self.Chosen(self.chosen))

    def _fit(self) -> None:
        count = len(self.shown)
        places = range(0, count, max(1, count // SAMPLE_ROWS))
        sort = self.shown.sort
        self._widths = ColumnWidths(
            self.columns,
            (self._cells(place, with_info=False) for place in places),
            room=self.scrollable_content_region.width - _GUTTER,
            sorted_by=sort.name if sort else None,
        )
        self._fitted = count
        self.column = max(0, min(self.column, len(self.columns) - 1))

    def _holds_last(self) -> bool:
        """Return whether the last row fits: times grow while a capture does."""
        count = len(self.shown)
        return not count or self._widths.holds(self._cells(count - 1, with_info=False))

    def text_of(self, place: int) -> str:
        """Return the text of all non-empty cells of a row."""
        return "  ".join(text for text, _ in self._cells(place) if text)

    def _cells(self, place: int, *, with_info: bool = True) -> list[tuple[str, bool]]:
        """Return the cells of a row: text, and whether it is a number."""
        number = self.shown.number(place)
        values = self.shown.parts.cells(number, self.columns)
        if with_info and INFO in self.columns:
            values[list(self.columns).index(INFO)] = self.info(number)
        return [
            (
                self._time(name, value, place)
                if is_time(name) and value is not None
                else cell_text(name, value),
                isinstance(value, int | float) and not isinstance(value, bool),
            )
            for name, value in zip(self.columns, values, strict=True)
        ]

    def _time(self, name: str, time_ns: int, place: int) -> str:
        before = None
        if self.times.style == "d" and place:
            before = self.shown.parts.value(self.shown.number(place - 1), name)
        return self.times.text(time_ns, before)

    @property
    def _page(self) -> int:
        return max(1, self.scrollable_content_region.height - _HEADER)

    def _reveal(self, *, center: bool = False) -> None:
        """Scroll the chosen row into view."""
        top, page = round(self.scroll_y), self._page
        if not top <= self.cursor < top + page:
            above = page // 2 if center else (0 if self.cursor < top else page - 1)
            self.scroll_to(y=max(0, self.cursor - above), animate=False)

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        width = self.size.width
        scroll_x, scroll_y = self.scroll_offset
        if y < _HEADER:
            return (
                self._header()
                .crop(scroll_x, scroll_x + width)
                .extend_cell_length(width, self.get_component_rich_style("row-list--header"))
            )
        place = y - _HEADER + scroll_y
        if place >= len(self.shown):
            return Strip.blank(width, self.rich_style)
        strip = self._strip(place)
        style = self._style(place)
        return strip.crop(scroll_x, scroll_x + width).extend_cell_length(width).apply_style(style)

    def _header(self) -> Strip:
        plain = self.get_component_rich_style("row-list--header")
        chosen = self.get_component_rich_style("row-list--column")
        sort = self.shown.sort
        segments = [Segment(" " * _GUTTER, plain)]
        titles = []
        for name in self.columns:
            arrow = "" if sort is None or sort.name != name else "▾" if sort.descends else "▴"
            titles.append(title(name) + arrow)
        line = self._widths.line(titles)
        begin = self._widths.begin(self.column)
        end = begin + (self._widths.widths[self.column] if self.columns else 0)
        segments += [
            Segment(line[:begin], plain),
            Segment(line[begin:end], chosen if self.has_focus else plain),
            Segment(line[end:], plain),
        ]
        return Strip(segments)

    def _strip(self, place: int) -> Strip:
        key = place, len(self.columns)
        found = self._strips.get(key)
        if found is None:
            mark = self.marks.sign(self.shown.number(place)).ljust(1)
            sign = row_colors.SIGNS.get(self._kind(place), " ")
            text = f"{mark}{sign} " + self._widths.line(text for text, _ in self._cells(place))
            found = self._strips[key] = Strip([Segment(text)])
        return found

    def _kind(self, place: int) -> str:
        """Return the style of a row by name."""
        names = [name for name in row_colors.COLUMNS if name in self.mode.columns]
        values = self.shown.parts.cells(self.shown.number(place), names)
        return row_colors.style_of(dict(zip(names, values, strict=True)))

    def _style(self, place: int) -> Style:
        style = self.get_component_rich_style(f"row-list--{self._kind(place)}")
        if place == self.cursor:
            style += self.get_component_rich_style("row-list--cursor")
        return style

    def action_move(self, count: int) -> None:
        """Move the cursor by some rows."""
        self.is_following = False
        self.choose(self.cursor + count)

    def action_page(self, count: int) -> None:
        """Move the cursor by some pages."""
        self.action_move(count * self._page)

    def action_first(self) -> None:
        """Choose the first row."""
        self.is_following = False
        self.choose(0)

    def action_last(self) -> None:
        """Choose the last row, and follow added ones."""
        self.is_following = True
        self.choose(len(self.shown) - 1)

    def action_column(self, count: int) -> None:
        """Choose another column, for sorting and moving."""
        self.column = max(0, min(self.column + count, len(self.columns) - 1))
        begin = self._widths.begin(self.column) + _GUTTER
        end = begin + (self._widths.widths[self.column] if self.columns else 0)
        left, width = round(self.scroll_x), self.scrollable_content_region.width
        if begin < left or self.column == 0:
            self.scroll_to(x=0 if self.column == 0 else begin, animate=False)
        elif end > left + width:
            self.scroll_to(x=end - width, animate=False)
        self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Stop following when the user scrolls up."""
        self.is_following = False

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked row or column."""
        x = event.x + round(self.scroll_x) - _GUTTER
        column = self._widths.at(x)
        if event.y < _HEADER:
            if column is not None:
                self.column = column
                self.post_message(self.HeadingClicked(self.columns[column]))
            return
        place = event.y - _HEADER + round(self.scroll_y)
        if place < len(self.shown):
            self.is_following = False
            self.choose(place)
            if event.button == _RIGHT:
                self.post_message(self.MenuAsked(None if column is None else self.columns[column]))
