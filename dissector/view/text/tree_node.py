"""Nodes of a message's tree of fields: a view prints them as lines, or opens them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, overload


@dataclass(eq=False, slots=True)
class Block:
    """
    Bytes with positions of fields: a frame, or the decompressed records of a batch.

    Attributes:
        title: Their kind: `request`, `records[0]`.
        data: The bytes.
        masked: Ranges [start, end) that are secret.
        is_frame: Whether they are a frame as captured.
    """

    title: str
    data: bytes = field(repr=False)
    masked: Sequence[tuple[int, int]] = ()
    is_frame: bool = True

    @property
    def whole(self) -> Place:
        """The place of all its bytes."""
        return Place(self, 0, len(self.data))


class Place(NamedTuple):
    """Bytes [start, end) of a block."""

    block: Block
    start: int
    end: int

    def __str__(self) -> str:
        return f" [{self.start}..{self.end})"

    def covers(self, block: Block, position: int) -> bool:
        """Return whether a byte of a block is inside."""
        return self.block is block and self.start <= position < self.end


Load = Callable[[], "Sequence[TreeNode]"]
"""Returns the nodes below a node."""


@dataclass(eq=False, slots=True)
class TreeNode:
    """
    A line of the tree, and the lines below it.

    Attributes:
        name: The name of a field, or a heading.
        text: Its value with its meaning, safe to print; empty without one.
        place: Its bytes; None where they are unknown.
        load: Returns the nodes below; None without any.
        path: The field in display filters: `request.topic_data.name`; empty without one there.
        value: The decoded value.
        is_masked: Whether the value is secret, and hidden.
        is_problem: Whether the line is about a defect.
        has_range: Whether the line names the place.
        is_inline: Whether the line of the node above shows it already.
    """

    name: str
    text: str = ""
    place: Place | None = None
    load: Load | None = None
    path: str = ""
    value: Any = None
    is_masked: bool = False
    is_problem: bool = False
    has_range: bool = True
    is_inline: bool = False

    @classmethod
    def problem(cls, what: str, place: Place | None = None) -> Self:
        """Return the node of a problem; its text must be safe to print."""
        return cls(f"! {what}", place=place, is_problem=True, has_range=False)

    @property
    def line(self) -> str:
        """Name, value and place as one text."""
        name = f"{self.name}: {self.text}" if self.text else self.name
        return f"{name}{self.place}" if self.place is not None and self.has_range else name


class LazyNodes(Sequence[TreeNode]):
    """Some nodes, and any number of similar ones after them, each created on demand."""

    def __init__(
        self, head: Sequence[TreeNode], count: int, make: Callable[[int], TreeNode]
    ) -> None:
        self._head = head
        self._count = count
        self._make = make

    @property
    def head_count(self) -> int:
        """Number of nodes before the similar ones."""
        return len(self._head)

    def __len__(self) -> int:
        return len(self._head) + self._count

    @overload
    def __getitem__(self, index: int) -> TreeNode: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TreeNode]: ...

    def __getitem__(self, index: int | slice) -> TreeNode | Sequence[TreeNode]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        head = len(self._head)
        return self._head[at] if at < head else self._make(at - head)

    def __iter__(self) -> Iterator[TreeNode]:
        yield from self._head
        yield from map(self._make, range(self._count))

    def at(self, block: Block, position: int) -> int | None:
        """Return the node that covers a byte of a block; nodes after the head are in its order."""
        found = index_at(self._head, block, position)
        if found is not None:
            return found
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            place = self._make(middle).place
            if place is None or place.block is not block or place.start > position:
                high = middle
            else:
                low = middle + 1
        place = self._make(low - 1).place if low else None
        return len(self._head) + low - 1 if place and place.covers(block, position) else None


def index_at(nodes: Sequence[TreeNode], block: Block, position: int) -> int | None:
    """Return the index of the smallest node that covers a byte of a block."""
    if isinstance(nodes, LazyNodes):
        return nodes.at(block, position)
    found = [
        (place.end - place.start, index)
        for index, node in enumerate(nodes)
        if (place := node.place) is not None and place.covers(block, position)
    ]
    return min(found)[1] if found else None


def tree_lines(node: TreeNode, depth: int = 0) -> list[str]:
    """Return the line of a node and, indented, of all nodes below it."""
    lines: list[str] = []
    _add_lines(node, "  " * depth, lines.append)
    return lines


def _add_lines(node: TreeNode, indent: str, add: Callable[[str], None]) -> None:
    add(indent + node.line)
    if node.load is not None:
        below = f"{indent}  "
        for child in node.load():
            if not child.is_inline:
                _add_lines(child, below, add)
