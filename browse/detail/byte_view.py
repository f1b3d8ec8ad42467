"""Hex dump of a frame or of decompressed records, of any size."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dissector.view.text.hexdump import hex_cells, masked_bytes
from dissector.view.text.tree_node import Block, Place

_WIDTHS = (32, 16, 8, 4)
"""Bytes per row; the largest width that fits."""


class ByteView(ScrollView, can_focus=True):
    """
    A hex dump with a cursor and a marked range.

    Only visible rows are rendered, whatever the size.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Byte back", show=False),
        Binding("right", "move(1)", "Byte on", show=False),
        Binding("up", "move_rows(-1)", "Row up", show=False),
        Binding("down", "move_rows(1)", "Row down", show=False),
        Binding("pageup", "move_pages(-1)", "Page up", show=False),
        Binding("pagedown", "move_pages(1)", "Page down", show=False),
        Binding("home", "move_to(0)", "First byte", show=False),
        Binding("end", "move_to(-1)", "Last byte", show=False),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "byte-view--offset",
        "byte-view--marked",
        "byte-view--cursor",
    }

    DEFAULT_CSS = """
    ByteView { background: $surface; color: $foreground; }
    ByteView > .byte-view--offset { color: $byte-offset; }
    ByteView > .byte-view--marked { background: $primary; color: $text; }
    ByteView > .byte-view--cursor { background: $secondary; color: $text; text-style: bold; }
    ByteView:focus > .byte-view--cursor { text-style: bold reverse; }
    """

    class Moved(Message):
        """
        The user moved the cursor to a byte.

        Attributes:
            block: The shown bytes.
            position: Position of the cursor.
        """

        def __init__(self, block: Block, position: int) -> None:
            super().__init__()
            self.block = block
            self.position = position

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._block = Block("", b"")
        self._is_masked = bytearray()
        self._marked = range(0)
        self._width = 16
        self.position = 0

    @property
    def block(self) -> Block:
        """The shown bytes."""
        return self._block

    @property
    def marked(self) -> range:
        """Positions of the marked bytes."""
        return self._marked

    def show(self, block: Block) -> None:
        """Show other bytes, with the cursor at the first."""
        if block is self._block:
            return
        self._block = block
        self._is_masked = masked_bytes(block.data, block.masked)
        self._marked = range(0)
        self.position = 0
        self._fit_rows()
        self.scroll_to(0, 0, animate=False)

    def mark(self, place: Place | None, *, moves: bool = True) -> None:
        """Mark a range, or none; with `moves` the cursor moves to its first byte."""
        size = len(self._block.data)
        self._marked = range(0) if place is None else range(place.start, min(place.end, size))
        if place is not None and moves:
            self._go(min(place.start, max(size - 1, 0)))
            rows = -(-len(self._marked) // self._width) or 1
            shown = Region(0, self.position // self._width, 1, min(rows, max(1, self.size.height)))
            self.scroll_to_region(shown, animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a row of the screen."""
        x, top = self.scroll_offset
        start = (top + y) * self._width
        data = self._block.data[start : start + self._width]
        if not data:
            return Strip.blank(self.size.width, self.rich_style)
        segments = self._segments(start, data)
        return Strip(segments).crop_extend(x, x + self.size.width, self.rich_style)

    def action_move(self, count: int) -> None:
        """Move the cursor by some bytes."""
        self._move(self.position + count)

    def action_move_rows(self, count: int) -> None:
        """Move the cursor by some rows."""
        at = self.position + count * self._width
        if 0 <= at < len(self._block.data):
            self._move(at)

    def action_move_pages(self, count: int) -> None:
        """Move the cursor by some screens."""
        self._move(self.position + count * self._width * max(1, self.size.height - 1))

    def action_move_to(self, position: int) -> None:
        """Move the cursor to a byte; -1 is the last one."""
        self._move(position % max(1, len(self._block.data)))

    def _move(self, position: int) -> None:
        if self._block.data:
            self._go(min(max(position, 0), len(self._block.data) - 1))
            self.post_message(self.Moved(self._block, self.position))

    def _go(self, position: int) -> None:
        self.position = position
        row = position // self._width
        self.scroll_to_region(Region(0, row, 1, 1), animate=False, force=True)
        self.refresh()

    def on_resize(self, _: Resize) -> None:
        """Fit the rows into the new width."""
        self._fit_rows()

    def on_click(self, event: Click) -> None:
        """Move the cursor to the byte under the mouse."""
        at = event.get_content_offset(self)
        if at is None:
            return
        x, y = at.x + self.scroll_offset.x, at.y + self.scroll_offset.y
        column = self._column_at(x)
        if column is not None and y * self._width + column < len(self._block.data):
            self._move(y * self._width + column)

    def _fit_rows(self) -> None:
        """Choose the number of bytes per row, and the scroll range."""
        room = self.scrollable_content_region.width or self.size.width
        fitting = [width for width in _WIDTHS if self._columns(width) <= room]
        self._width = fitting[0] if fitting else _WIDTHS[-1]
        rows = -(-len(self._block.data) // self._width)
        self.virtual_size = Size(self._columns(self._width), rows)
        self.refresh()

    @property
    def _digits(self) -> int:
        return max(4, len(f"{max(len(self._block.data) - 1, 0):x}"))

    def _columns(self, width: int) -> int:
        """Return the width of a row with some bytes."""
        return self._digits + 2 + _hex_columns(width) + 2 + width

    def _column_at(self, x: int) -> int | None:
        """Return the index in a row of the byte at a screen column."""
        begin = self._digits + 2
        text = begin + _hex_columns(self._width) + 2
        if text <= x < text + self._width:
            return x - text
        found = [at for at in range(self._width) if 0 <= x - begin - _hex_columns(at, True) < 3]
        return found[0] if found and x >= begin else None

    def _segments(self, start: int, data: bytes) -> list[Segment]:
        """Return a row: offset, hex and text."""
        plain = self.rich_style
        offset = plain + self.get_component_rich_style("byte-view--offset", partial=True)
        hexes, texts = hex_cells(data, self._is_masked[start : start + len(data)])
        styles = [self._style(start + at, plain) for at in range(len(data))]
        segments = [Segment(f"{start:0{self._digits}x}  ", offset)]
        for at, cell in enumerate(hexes):
            segments.append(Segment(cell, styles[at]))
            is_last = at + 1 == len(hexes)
            gap = "" if is_last else "  " if at % 8 == 7 else " "
            # Gaps inside a range are marked, too.
            joined = not is_last and styles[at] is styles[at + 1]
            segments.append(Segment(gap, styles[at] if joined else plain))
        missing = _hex_columns(self._width) - _hex_columns(len(data))
        segments.append(Segment(" " * (missing + 2), plain))
        segments += [Segment(cell, style) for cell, style in zip(texts, styles, strict=True)]
        return segments

    def _style(self, position: int, plain: Style) -> Style:
        if position == self.position:
            return plain + self.get_component_rich_style("byte-view--cursor", partial=True)
        return self._marked_style if position in self._marked else plain

    @property
    def _marked_style(self) -> Style:
        return self.get_component_rich_style("byte-view--marked")


def _hex_columns(count: int, is_next: bool = False) -> int:
    """Return the width of some bytes in hex; `is_next` includes the gap to the next byte."""
    columns = 3 * count + (count if is_next else max(count - 1, 0)) // 8
    return columns if is_next or not count else columns - 1
