"""A line of blocks over the list: exchanges over time, errors in red; ranges become filters."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from browse.rows.traffic_bins import TrafficBins

_BLOCKS = " ▁▂▃▄▅▆▇█"
_MARGIN = 3
"""As the left margin of the list."""
_MOST_LABEL = 16
_NS_PER_S = 1e9


class TrafficLine(Widget, can_focus=True):
    """
    The line; posts `Selected`, or `Left` when it is left without a selection.

    Attributes:
        cursor: Chosen cell.
        range_begin: Where the selection began; None without one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Earlier", show=False),
        Binding("right,l", "move(1)", "Later", show=False),
        Binding("home", "move_to(0)", "Begin of the capture", show=False),
        Binding("end", "move_to(-1)", "End of the capture", show=False),
        Binding("space", "begin_range", "Begin the range here", show=False),
        Binding("shift+left", "extend(-1)", "Range to earlier times", show=False),
        Binding("shift+right", "extend(1)", "Range to later times", show=False),
        Binding("enter", "select", "Only this time", show=False),
        Binding("escape", "leave", "Back to the list", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"traffic--error"}
    DEFAULT_CSS = """
    TrafficLine { height: 1; background: $panel; color: $foreground; }
    TrafficLine > .traffic--error { color: $row-error; }
    TrafficLine:nocolor > .traffic--error { color: $foreground; text-style: underline; }
    """

    class Selected(Message):
        """
        The user chose a time.

        Attributes:
            begin_s: Its begin, in seconds from the first packet.
            end_s: Its end.
        """

        def __init__(self, begin_s: float, end_s: float) -> None:
            super().__init__()
            self.begin_s = begin_s
            self.end_s = end_s

    class Left(Message):
        """The user left the line."""

    def __init__(self, bins: TrafficBins, *, id: str) -> None:
        super().__init__(id=id)
        self._bins = bins
        self._held = False
        self.cursor = 0
        self.range_begin: int | None = None

    def take_in(self, begin_ns: int) -> None:
        """Show exchanges that came."""
        if self._bins.update(begin_ns):
            self.refresh()

    @property
    def cells(self) -> int:
        """Number of cells for the whole capture."""
        return max(8, self.size.width - _MARGIN - _MOST_LABEL)

    @property
    def _chosen(self) -> tuple[int, int]:
        """First and last chosen cell."""
        begin = self.cursor if self.range_begin is None else self.range_begin
        return min(begin, self.cursor), max(begin, self.cursor)

    def range_s(self) -> tuple[float, float]:
        """Return begin and end of the chosen range, in seconds from the first packet."""
        first, last = self._chosen
        cell_s = self._bins.end * self._bins.bin_ns / self.cells / _NS_PER_S
        return first * cell_s, (last + 1) * cell_s

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        plain = self.rich_style
        error = plain + self.get_component_rich_style("traffic--error", partial=True)
        counts, errors = self._bins.resampled(self.cells)
        most = max(int(counts.max(initial=0)), 1)
        heights = -(-counts * (len(_BLOCKS) - 1) // most)
        first, last = self._chosen
        segments = [Segment(" " * _MARGIN, plain)]
        for cell, height in enumerate(heights.tolist()):
            style = error if errors[cell] else plain
            if (self.has_focus or self._held) and first <= cell <= last:
                style += Style(reverse=True)
            segments.append(Segment(_BLOCKS[height], style))
        segments.append(Segment(f" {self._label()}", plain))
        return Strip(segments).crop_extend(0, self.size.width, plain)

    def _label(self) -> str:
        if not (self.has_focus or self._held):
            total_s = self._bins.end * self._bins.bin_ns / _NS_PER_S
            return f"{total_s:,.3f} s" if self._bins.end else ""
        begin_s, end_s = self.range_s()
        return f"{begin_s:.3f}-{end_s:.3f} s"

    def action_move(self, cells: int) -> None:
        """Move the cursor, with the end of the range if one has begun."""
        self._go(self.cursor + cells)

    def action_move_to(self, cell: int) -> None:
        """Move the cursor to a cell; -1 is the last one."""
        self._go(cell % self.cells)

    def action_begin_range(self) -> None:
        """Begin the range at the cursor, or drop it."""
        self.range_begin = self.cursor if self.range_begin is None else None
        self.refresh()

    def action_extend(self, cells: int) -> None:
        """Move the end of the range."""
        self.range_begin = self.cursor if self.range_begin is None else self.range_begin
        self._go(self.cursor + cells)

    def action_select(self) -> None:
        """Post the range."""
        if self._bins.end:
            self.post_message(self.Selected(*self.range_s()))
        self.range_begin = None

    def action_leave(self) -> None:
        """Leave the line."""
        self.range_begin = None
        self.post_message(self.Left())

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a range."""
        self.capture_mouse()
        self._held = True
        self.cursor = self._cell_at(event.x)
        self.range_begin = self.cursor
        self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the end of the range."""
        if self._held:
            self._go(self._cell_at(event.x))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End the range."""
        if self._held:
            self.release_mouse()
            self._held = False
            self.action_select()

    def _cell_at(self, x: int) -> int:
        return min(max(x - _MARGIN, 0), self.cells - 1)

    def _go(self, cell: int) -> None:
        self.cursor = min(max(cell, 0), self.cells - 1)
        self.refresh()
