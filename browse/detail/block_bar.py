"""Bar with the available bytes: request, response, decompressed records."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from dissector.view.text.tree_node import Block


class BlockBar(Static):
    """A bar of titles; the mouse, or keys of the panes, select one."""

    DEFAULT_CSS = """
    BlockBar { height: 1; background: $panel; color: $foreground; }
    """

    class Chosen(Message):
        """
        The user selected other bytes.

        Attributes:
            block: The selected bytes.
        """

        def __init__(self, block: Block) -> None:
            super().__init__()
            self.block = block

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._blocks: Sequence[Block] = ()
        self._chosen: Block | None = None

    def show(self, blocks: Sequence[Block], chosen: Block | None) -> None:
        """Show the titles of blocks."""
        self._blocks, self._chosen = blocks, chosen
        label = Text(no_wrap=True, overflow="ellipsis")
        for block in blocks:
            label.append(_name(block), "reverse" if block is chosen else "")
        self.update(label)

    def next_of(self, block: Block, step: int) -> Block | None:
        """Return the previous or next block; None without one."""
        blocks = list(self._blocks)
        if not blocks:
            return None
        at = blocks.index(block) if block in blocks else 0
        return blocks[(at + step) % len(blocks)]

    def on_click(self, event: Click) -> None:
        """Select the title under the mouse."""
        column = 0
        for block in self._blocks:
            column += len(_name(block))
            if event.x < column:
                self.post_message(self.Chosen(block))
                return


def _name(block: Block) -> str:
    return f" {block.title} ({len(block.data):,}) "
