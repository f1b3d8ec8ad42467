"""A list of text lines of any length; only visible ones are rendered."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineList(ScrollView, can_focus=True):
    """
    Lines with a cursor.

    Attributes:
        row: The line under the cursor.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "move_pages(-1)", "Page up", show=False),
        Binding("pagedown,space", "move_pages(1)", "Page down", show=False),
        Binding("home,g", "move_to(0)", "First line", show=False),
        Binding("end,G", "move_to(-1)", "Last line", show=False),
        Binding("left", "scroll_left", "Left", show=False),
        Binding("right", "scroll_right", "Right", show=False),
        Binding("enter", "choose", "Go there", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-list--cursor"}
    DEFAULT_CSS = """
    LineList { height: 1fr; background: $surface; scrollbar-gutter: stable; }
    LineList > .line-list--cursor { background: $boost; text-style: bold; }
    LineList:focus > .line-list--cursor { background: $primary 40%; }
    """

    class Chosen(Message):
        """
        The user pressed Enter on a line.

        Attributes:
            row: The line.
        """

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    class Moved(Message):
        """
        The cursor moved to another line.

        Attributes:
            row: The line.
        """

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def __init__(self, count: int = 0, line: Callable[[int], Text] = lambda row: Text()) -> None:
        """Create the list; `line` renders a line by number."""
        super().__init__()
        self._count = count
        self._line = line
        self._widest = 0
        self.row = 0

    def show(self, count: int, line: Callable[[int], Text]) -> None:
        """Show other lines."""
        self._count, self._line, self._widest = count, line, 0
        self.virtual_size = Size(1, count)
        self.row = min(self.row, max(count - 1, 0))
        self.refresh()

    def on_mount(self) -> None:
        """Set the scroll range."""
        self.virtual_size = Size(1, self._count)

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        x, top = self.scroll_offset
        row, width = top + y, self.size.width
        if row >= self._count:
            return Strip.blank(width, self.rich_style)
        text = self._line(row)
        strip = Strip(text.render(self.app.console)).simplify()
        if strip.cell_length > self._widest:
            self._widest = strip.cell_length
            self.call_later(self._widen)
        style = self.rich_style
        if row == self.row:
            style += self.get_component_rich_style("line-list--cursor", partial=True)
        return strip.crop_extend(x, x + width, None).apply_style(style)

    def action_move(self, rows: int) -> None:
        """Move the cursor by some lines."""
        self._go(self.row + rows)

    def action_move_pages(self, pages: int) -> None:
        """Move the cursor by some screens."""
        self._go(self.row + pages * max(1, self.size.height - 1))

    def action_move_to(self, row: int) -> None:
        """Move the cursor to a line; -1 is the last one."""
        self._go(row % max(1, self._count))

    def action_choose(self) -> None:
        """Post the line at the cursor."""
        if self._count:
            self.post_message(self.Chosen(self.row))

    def on_click(self, event: Click) -> None:
        """Move the cursor to the line under the mouse; a second click chooses it."""
        at = event.get_content_offset(self)
        if at is not None and at.y + self.scroll_offset.y < self._count:
            self._go(at.y + self.scroll_offset.y)
            if event.chain == 2:
                self.action_choose()

    def _go(self, row: int) -> None:
        self.row = min(max(row, 0), max(self._count - 1, 0))
        place = Region(self.scroll_offset.x, self.row, 1, 1)
        self.scroll_to_region(place, animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved(self.row))

    def _widen(self) -> None:
        self.virtual_size = Size(self._widest, self._count)
