"""Tree of the fields of an exchange; children are created when their parent opens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode as Line

from browse.detail.array_groups import GROUP, shown_alone, with_groups
from browse.detail.detail_events import FieldChosen, FieldColumn, FieldMenu, How
from browse.detail.exchange_nodes import nodes_or_bug, schemas_of
from browse.detail.value_nodes import inside_of, is_decoded, records_text, value_text
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.context import using
from dissector.view.text.tree_node import Block, LazyNodes, TreeNode, index_at

if TYPE_CHECKING:
    from dissector.protocol.definitions.schemas import Schemas

_MOST_LINES = 400
"""Maximum number of lines that open automatically."""
_INDEX = re.compile(r"\d+")
_OPEN_AT_FIRST = ("connection", "event", "request", "response", "request/body", "response/body")
_RIGHT = 3
"""Number of the right button of the mouse."""
_SHORT_ARRAY = 3
"""Maximum length of arrays that open automatically."""
_LONG_BYTES = 1 << 18


@dataclass(eq=False, slots=True)
class Item:
    """
    Data of a line in the tree.

    Attributes:
        key: Names of the field and its parents, to find it in other exchanges.
        node: The field, or a part of a long array.
        below: Child fields, after the first opening.
    """

    key: str
    node: TreeNode
    below: Sequence[TreeNode] = ()


FieldLine: TypeAlias = Line[Item]


class FieldTree(Tree[Item]):
    """
    The fields of an exchange.

    Open fields stay open in the next exchange.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "open", "Open", show=False),
        Binding("left", "close", "Close, or to the field around it", show=False),
        Binding("ctrl+left", "scroll_left", "Scroll to the left", show=False),
        Binding("ctrl+right", "scroll_right", "Scroll to the right", show=False),
        Binding("asterisk", "open_all", "Open all below", show=False),
        Binding("equals_sign", "choose('replace')", "Filter by this field"),
        Binding("a", "choose('and')", "And this field"),
        Binding("o", "choose('or')", "Or this field"),
        Binding("n", "choose('not')", "And not this field"),
        Binding("c", "column", "As a column"),
        Binding("y", "copy", "Copy the field"),
        Binding("Y", "copy_value", "Copy its value", show=False),
    ]

    DEFAULT_CSS = """
    FieldTree { scrollbar-gutter: auto; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)
        self.show_root = False
        self.guide_depth = 2
        self._open_keys = set(_OPEN_AT_FIRST)
        self._closed_keys: set[str] = set()
        self._schemas: Schemas | None = None
        self._exchange: Exchange | None = None
        self._owners: dict[Block, FieldLine] = {}
        self._revealed: list[FieldLine] = []  # opened for a byte, not by the user
        self._quiet: Counter[FieldLine] = Counter()  # times opened or closed, not by the user
        self._budget = 0

    @property
    def chosen(self) -> TreeNode | None:
        """The field at the cursor."""
        item = None if self.cursor_node is None else self.cursor_node.data
        return None if item is None else item.node

    @property
    def blocks(self) -> list[Block]:
        """Bytes of the fields opened so far: frames, then decompressed records."""
        return sorted(self._owners, key=lambda block: not block.is_frame)

    def show(self, exchange: Exchange | None, roots: Sequence[TreeNode] = ()) -> None:
        """Show the fields of another exchange; None clears the tree."""
        self.clear()
        self._schemas = schemas_of(exchange)
        self._exchange = exchange
        self._owners = {}
        self._revealed.clear()
        self._quiet.clear()
        self._budget = _MOST_LINES
        for node in roots:
            kind = node.place.block.title if node.place is not None else node.name
            line = self._add(self.root, node, kind)
            if node.place is not None:
                self._owners[node.place.block] = line
        self.root.expand()
        for line in list(self.root.children):
            self._open_as_before(line)
        first = next((line for line in self.root.children if line.is_expanded), None)
        if first is not None:
            self.go_to(first)

    def reveal(self, block: Block, position: int) -> None:
        """Open the tree down to the field of a byte, and move the cursor to it."""
        line = self._owners.get(block)
        if line is None:
            return
        before, self._revealed = self._revealed, []
        while (found := self._line_at(line, block, position)) is not None:
            line = found
        around = set(_with_parents(line))
        for each in before:
            # Fields passed on the way are closed again, to bound time and memory.
            if each in around:
                self._revealed.append(each)
            else:
                self._quiet[each] += 1
                each.collapse()
        self.go_to(line)

    def go_to_path(self, path: Sequence[str]) -> None:
        """Open the tree down to a record, by the names on the way, and what its value says."""
        lines = [each for each in self.root.children if each.data and each.data.key == path[0]]
        for name in path[1:]:
            if lines:
                lines = self._lines_named(lines[0], name)
        if not lines:
            return
        line = lines[0]
        self._open_quietly(line)
        children = [(each, each.data.node) for each in line.children if each.data]
        decoded = [each for each, node in children if is_decoded(node)]
        # JSON without a schema opens, too.
        decoded = decoded or [each for each, node in children if node.name == "value" and node.load]
        for each in decoded:
            self._budget = _MOST_LINES
            self._open_all_quietly(each)
        self.go_to(decoded[-1] if decoded else line)
        # The last line of the pane would show nothing of the value.
        top = decoded[0].line - 1 if decoded else line.line
        self.call_after_refresh(self.scroll_to, y=top, animate=False)

    def action_open(self) -> None:
        """Open the line at the cursor."""
        if self.cursor_node is not None:
            self.open_line(self.cursor_node)

    def action_close(self) -> None:
        """Close the line at the cursor; if it is closed, go to its parent."""
        line = self.cursor_node
        if line is None:
            return
        if line.is_expanded and line.allow_expand:
            line.collapse()
        elif line.parent is not None and line.parent is not self.root:
            self.go_to(line.parent)

    def action_open_all(self) -> None:
        """Open all lines below the cursor, up to a limit."""
        if self.cursor_node is not None:
            self._budget = _MOST_LINES
            self._open_below(self.cursor_node, lambda line: True)

    def action_choose(self, how: How) -> None:
        """Make a filter of the field at the cursor."""
        text = None
        if self.chosen is not None and self._exchange is not None:
            with using(self._schemas):
                from browse.detail.field_filters import filter_of

                text = filter_of(self.chosen, self._exchange)
        if text is None:
            self.notify("no filter for this line", severity="warning")
        else:
            self.post_message(FieldChosen(text, how))

    def action_column(self) -> None:
        """Make a column of the field at the cursor."""
        from browse.detail.field_filters import column_of

        path = None if self.chosen is None else column_of(self.chosen)
        if path is None:
            self.notify("this line can't be a column", severity="warning")
        else:
            self.post_message(FieldColumn(path))

    def action_copy(self) -> None:
        """Copy the line at the cursor."""
        if self.chosen is not None:
            self.app.copy_to_clipboard(self.chosen.line)
            self.notify("copied", timeout=2)

    def action_copy_value(self) -> None:
        """Copy only the value of the field at the cursor."""
        if self.chosen is not None:
            self.app.copy_to_clipboard(value_text(self.chosen))
            self.notify("copied", timeout=2)

    def go_to(self, line: FieldLine) -> None:
        """Move the cursor to a line."""
        if self.last_line >= 0:  # assigns numbers to lines opened just before
            self.move_cursor(line)
            self.scroll_to_node(line, animate=False)
            # A scroll bar that appears now would cover it.
            self.call_after_refresh(self._keep_in_view, line)

    def _keep_in_view(self, line: FieldLine) -> None:
        if self.cursor_node is line:
            self.scroll_to_node(line, animate=False)

    def open_line(self, line: FieldLine) -> None:
        """Open a line; create its children on first use."""
        self._fill(line)
        line.expand()

    async def _on_click(self, event: events.Click) -> None:
        """Choose a line; a right click opens the menu of its field."""
        line = event.style.meta.get("line")
        if event.button != _RIGHT:
            await super()._on_click(event)
        elif line is not None and (found := self.get_node_at_line(line)) is not None:
            event.prevent_default()
            self.go_to(found)
            self.post_message(FieldMenu())

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Item]) -> None:
        """Create the child lines, and remember the open state."""
        self._fill(event.node)
        if self._quiet[event.node] > 0:
            self._quiet[event.node] -= 1
        elif event.node.data is not None:
            self._open_keys.add(event.node.data.key)
            self._closed_keys.discard(event.node.data.key)

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[Item]) -> None:
        """Remember the closed state."""
        if self._quiet[event.node] > 0:
            self._quiet[event.node] -= 1
        elif event.node.data is not None:
            self._open_keys.discard(event.node.data.key)
            self._closed_keys.add(event.node.data.key)

    def _add(self, parent: FieldLine, node: TreeNode, key: str) -> FieldLine:
        node.load = node.load or inside_of(node)
        item = Item(key, node)
        return parent.add(_label(node), item, allow_expand=node.load is not None)

    def _fill(self, line: FieldLine) -> None:
        """Add the child lines of a line, unless they exist."""
        item = line.data
        if item is None or item.node.load is None or line.children:
            return
        with using(self._schemas):
            item.below = nodes_or_bug(item.node.load)
            alone = shown_alone(item.below)
            nodes = nodes_or_bug(partial(with_groups, item.below, alone))
            for node in nodes:
                self._add(line, node, f"{item.key}/{_INDEX.sub('', node.name)}")
            last = item.below[-1] if item.below else None
        if last is not None and last.place is not None:
            self._owners.setdefault(last.place.block, line)

    def _open_as_before(self, line: FieldLine) -> None:
        """Open short arrays, and fields that were open in the previous exchange."""

        def is_wanted(each: FieldLine) -> bool:
            if each.data is None or each.data.key in self._closed_keys or _is_long(each.data.node):
                return False
            return each.data.key in self._open_keys or _is_short(each.data.node)

        self._open_below(line, is_wanted)

    def _open_below(self, line: FieldLine, is_wanted: Callable[[FieldLine], bool]) -> None:
        if not line.allow_expand or not is_wanted(line) or self._budget <= 0:
            return
        self.open_line(line)
        self._budget -= len(line.children)
        for child in line.children:
            self._open_below(child, is_wanted)

    def _line_at(self, line: FieldLine, block: Block, position: int) -> FieldLine | None:
        """Return the child line that contains a byte; None without one."""
        if line.data is None or not line.allow_expand:
            return None
        self._open_quietly(line)
        below = line.data.below
        with using(self._schemas):
            index = index_at(below, block, position)
        return None if index is None else self._line_of(line, index)

    def _lines_named(self, line: FieldLine, name: str) -> list[FieldLine]:
        """Return the child line of a field with a name, if there is one."""
        if line.data is None or not line.allow_expand:
            return []
        self._open_quietly(line)
        below = line.data.below
        if isinstance(below, LazyNodes):
            index: int | None = below.head_count + int(name.strip("[]"))
        else:
            index = next((at for at, each in enumerate(below) if each.name == name), None)
        return [self._line_of(line, index)] if index is not None and index < len(below) else []

    def _line_of(self, line: FieldLine, index: int) -> FieldLine:
        """Return the child line of a field by its index; in long arrays it is in a group."""
        assert line.data is not None
        alone = shown_alone(line.data.below)
        if index < alone:
            return line.children[index]
        group, at = divmod(index - alone, GROUP)
        part = line.children[alone + group]
        self._open_quietly(part)
        return part.children[at]

    def _open_all_quietly(self, line: FieldLine) -> None:
        """Open a line and all below it, up to a limit."""
        if not line.allow_expand or self._budget <= 0:
            return
        self._open_quietly(line)
        self._budget -= len(line.children)
        for child in line.children:
            self._open_all_quietly(child)

    def _open_quietly(self, line: FieldLine) -> None:
        """Open a line for a byte or a record, to be closed again later."""
        self._fill(line)
        if line.allow_expand and not line.is_expanded:
            self._revealed.append(line)
            self._quiet[line] += 1
            line.expand()


def _is_long(node: TreeNode) -> bool:
    """Return whether a node has too many records to open automatically."""
    return isinstance(node.value, bytes) and len(node.value) > _LONG_BYTES


def _with_parents(line: FieldLine) -> Iterator[FieldLine]:
    found: FieldLine | None = line
    while found is not None:
        yield found
        found = found.parent


def _is_short(node: TreeNode) -> bool:
    """Return whether a node is a struct, or a short array."""
    value = node.value
    return isinstance(value, dict) or (isinstance(value, list) and len(value) <= _SHORT_ARRAY)


def _label(node: TreeNode) -> Text:
    """Return the label of a line, with escaped markup."""
    if node.is_problem:
        return Text(node.name, "bold red")
    label = Text(node.name, "bold" if node.load is not None else "")
    if not node.name:
        label.append(node.text)
    elif node.text:
        is_error = node.name.endswith("error_code") and node.value not in (0, None)
        label.append(": ", "dim")
        text = records_text(node) or node.text
        label.append(text, "dim" if node.is_masked else "red" if is_error else "")
    return label
