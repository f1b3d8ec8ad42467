"""Groups of the elements of long arrays, which open one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dissector.view.text.tree_node import LazyNodes, TreeNode

GROUP = 200
"""Elements of a long array per group."""


def shown_alone(nodes: Sequence[TreeNode]) -> int:
    """Return the number of nodes outside groups; in long arrays, those before the elements."""
    if len(nodes) <= 2 * GROUP:
        return len(nodes)
    return nodes.head_count if isinstance(nodes, LazyNodes) else 0


def with_groups(nodes: Sequence[TreeNode], alone: int) -> Sequence[TreeNode]:
    """Return the first nodes, and groups for the others."""
    return [*nodes[:alone], *_groups(nodes, alone)]


def _groups(nodes: Sequence[TreeNode], start: int) -> Iterator[TreeNode]:
    """Yield group nodes for a long array."""
    for first in range(start, len(nodes), GROUP):
        end = min(first + GROUP, len(nodes))
        name = f"[{first - start:,}..{end - 1 - start:,}]"
        yield TreeNode(name, load=partial(_part, nodes, first, end))


def _part(nodes: Sequence[TreeNode], first: int, end: int) -> Sequence[TreeNode]:
    return nodes[first:end]
