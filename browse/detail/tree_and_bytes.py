"""Panes with the fields and the bytes of an exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.message import Message
from textual.widgets import Tree

from browse.detail.block_bar import BlockBar
from browse.detail.byte_view import ByteView
from browse.detail.detail_events import FieldMarked, PacketChosen
from browse.detail.exchange_nodes import exchange_nodes, is_slow, loaded, nodes_or_bug
from browse.detail.field_tree import FieldTree, Item
from browse.detail.row_nodes import PACKET_PATHS
from browse.listing.screen_values import ScreenValues
from browse.rows.record_paths import record_path
from dissector.engine.exchanges.exchange import Exchange
from dissector.view.text.tree_node import Block, TreeNode

_SCHEMAS_S = 0.2
"""Interval at which the panes collect the schemas that a thread has read."""
_MOST_SHARE = 9
"""Maximum size of the larger pane, in tenths."""


class NodesRead(Message):
    """A thread has decoded the fields of an exchange."""

    def __init__(self, exchange: Exchange, nodes: Sequence[TreeNode]) -> None:
        super().__init__()
        self.exchange = exchange
        self.nodes = nodes


class DetailPanes(Container):
    """
    Fields and bytes of one exchange.

    Posts `FieldChosen` and `FieldColumn`.

    Attributes:
        fields: Tree of fields.
        blocks: Bar of the available bytes.
        bytes: Hex dump.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "next_block(-1)", "Bytes before", show=False),
        Binding("right_square_bracket", "next_block(1)", "Next bytes", show=False),
    ]

    DEFAULT_CSS = """
    DetailPanes { layout: vertical; }
    DetailPanes.-beside { layout: horizontal; }
    DetailPanes FieldTree { height: 6fr; width: 1fr; }
    DetailPanes Vertical { height: 4fr; width: 1fr; }
    DetailPanes.-beside FieldTree { height: 1fr; width: 5fr; }
    DetailPanes.-beside Vertical { height: 1fr; width: 5fr; }
    DetailPanes ByteView { height: 1fr; }
    """

    def __init__(
        self,
        *,
        show_secrets: bool = False,
        values: ScreenValues | None = None,
        id: str | None = None,
    ) -> None:
        """Create the panes; `show_secrets` disables masks, `values` decodes keys and values."""
        super().__init__(id=id)
        self._show_secrets = show_secrets
        self._values = values
        self._record: Mapping[str, Any] | None = None
        self._row_node: TreeNode | None = None
        self._shares = {False: 6, True: 5}
        self._wanted: Exchange | None = None
        self._one_at_a_time = Lock()
        self.fields = FieldTree(id="fields")
        self.blocks = BlockBar(id="blocks")
        self.bytes = ByteView(id="bytes")
        self._lower = Vertical(self.blocks, self.bytes)

    def compose(self) -> ComposeResult:
        """Make the panes."""
        yield self.fields
        yield self._lower

    def on_mount(self) -> None:
        """Look for schemas that a thread has read."""
        if self._values is not None:
            self.set_interval(_SCHEMAS_S, self._take_schemas)

    def on_unmount(self) -> None:
        """End the reading of schemas."""
        if self._values is not None:
            self._values.close()

    def _take_schemas(self) -> None:
        if self._values is not None and self._values.poll() and self._wanted is not None:
            self._show_wanted()

    def show(
        self,
        exchange: Exchange | None,
        record: Mapping[str, Any] | None = None,
        row_node: TreeNode | None = None,
    ) -> None:
        """
        Show another exchange, or none; a thread decodes long messages first.

        `record` is the row of the list of records whose value is to be opened, `row_node` the
        node of a row that is no exchange.
        """
        if self._values is not None:
            self._values.look_again()
        self._wanted, self._record, self._row_node = exchange, record, row_node
        self._show_wanted()

    def show_record(self, record: Mapping[str, Any]) -> None:
        """Open the value of another record of the same exchange."""
        self._record = record
        if self._wanted is not None and not self.fields.loading:
            self._go_to_record(self._wanted)

    def _go_to_record(self, exchange: Exchange) -> None:
        path = None if self._record is None else record_path(exchange, self._record)
        if path is not None:
            self.fields.go_to_path(path)

    def _show_wanted(self) -> None:
        exchange = self._wanted
        if exchange is not None and is_slow(exchange):
            self._show_nodes(None, ())
            self.fields.loading = True
            self.run_worker(partial(self._read, exchange), thread=True, exclusive=True)
            return
        self.fields.loading = False
        nodes = nodes_or_bug(partial(self._top_nodes, exchange))
        self._show_nodes(exchange, nodes)

    def _read(self, exchange: Exchange) -> None:
        with self._one_at_a_time:
            if exchange is not self._wanted:
                return
            nodes = nodes_or_bug(lambda: loaded(exchange, self._top_nodes(exchange)))
            self.post_message(NodesRead(exchange, nodes))

    def _top_nodes(self, exchange: Exchange | None) -> Sequence[TreeNode]:
        first = [self._row_node] if self._row_node is not None else []
        if exchange is None:
            return first
        read_value = None if self._values is None else self._values.read
        found = exchange_nodes(exchange, show_secrets=self._show_secrets, read_value=read_value)
        return [*first, *found]

    def on_nodes_read(self, event: NodesRead) -> None:
        """Show the exchange decoded by the thread, unless another one was chosen since."""
        event.stop()
        if event.exchange is self._wanted:
            self.fields.loading = False
            self._show_nodes(event.exchange, event.nodes)

    def _show_nodes(self, exchange: Exchange | None, nodes: Sequence[TreeNode]) -> None:
        self.fields.show(exchange, nodes)
        blocks = self.fields.blocks
        self._show_block(blocks[0] if blocks else Block("", b""))
        self._mark(self.fields.chosen)
        if exchange is not None:
            self._go_to_record(exchange)

    def put(self, *, beside: bool) -> None:
        """Arrange the panes side by side, or one above the other."""
        self.set_class(beside, "-beside")
        self.resize_tree(0)

    def resize_tree(self, step: int) -> None:
        """Enlarge or shrink the tree, in tenths."""
        beside = self.has_class("-beside")
        share = min(max(self._shares[beside] + step, 10 - _MOST_SHARE), _MOST_SHARE)
        self._shares[beside] = share
        tree, rest = f"{share}fr", f"{10 - share}fr"
        lower = self._lower
        self.fields.styles.width, lower.styles.width = (tree, rest) if beside else ("1fr", "1fr")
        self.fields.styles.height, lower.styles.height = ("1fr", "1fr") if beside else (tree, rest)

    def action_next_block(self, step: int) -> None:
        """Show the next or previous bytes."""
        block = self.blocks.next_of(self.bytes.block, step)
        if block is not None:
            self._show_block(block)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Item]) -> None:
        """Mark the bytes of the field at the cursor."""
        event.stop()
        node = None if event.node.data is None else event.node.data.node
        self._mark(node)
        self.post_message(FieldMarked("" if node is None else _place_text(node)))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Item]) -> None:
        """Add the titles of decompressed bytes."""
        event.stop()
        self.blocks.show(self.fields.blocks, self.bytes.block)

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[Item]) -> None:
        """Stop the message here."""
        event.stop()

    def on_tree_node_selected(self, event: Tree.NodeSelected[Item]) -> None:
        """Post the packet that the line names, if it does."""
        event.stop()
        node = None if event.node.data is None else event.node.data.node
        if node is not None and node.path in PACKET_PATHS and isinstance(node.value, int):
            self.post_message(PacketChosen(node.value))

    def on_byte_view_moved(self, event: ByteView.Moved) -> None:
        """Mark the field of the byte at the cursor."""
        event.stop()
        self.fields.reveal(event.block, event.position)

    def on_block_bar_chosen(self, event: BlockBar.Chosen) -> None:
        """Show the selected bytes."""
        event.stop()
        self._show_block(event.block)

    def _mark(self, node: TreeNode | None) -> None:
        place = None if node is None else node.place
        if place is not None and place.block not in self.fields.blocks:
            return  # belongs to the previous exchange
        if place is not None and place.block is not self.bytes.block:
            self._show_block(place.block)
        if place is not None and place.start == 0 and place.end >= len(place.block.data):
            place = None  # all bytes: the mark would say nothing
        # The bytes must not scroll while the user moves in them.
        self.bytes.mark(place, moves=not self.bytes.has_focus)

    def _show_block(self, block: Block) -> None:
        self.bytes.show(block)
        self.blocks.show(self.fields.blocks, block)


def _place_text(node: TreeNode) -> str:
    """Return the name of a field in filters, and its bytes."""
    place = node.place
    if place is None:
        return node.path
    count = place.end - place.start
    unit = "byte" if count == 1 else "bytes"
    block = "" if place.block.is_frame else f" of {place.block.title}"
    return f"{node.path or node.name}  {count:,} {unit} at {place.start:,}{block}"
