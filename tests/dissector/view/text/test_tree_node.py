from __future__ import annotations

from dissector.view.text.tree_node import Block, LazyNodes, Place, TreeNode, index_at, tree_lines

BLOCK = Block("request", bytes(100))


def node(name: str, start: int, end: int, block: Block = BLOCK) -> TreeNode:
    return TreeNode(name, place=Place(block, start, end))


def test_lines_have_positions_and_indentation() -> None:
    hidden = TreeNode("item", "1", is_inline=True)
    inner = TreeNode("b", "2", Place(BLOCK, 4, 8))
    below = [inner, hidden, TreeNode.problem("bad", Place(BLOCK, 8, 9))]
    root = TreeNode("a", place=BLOCK.whole, load=lambda: below, has_range=False)
    assert tree_lines(root) == ["a", "  b: 2 [4..8)", "  ! bad"]


def test_lazy_nodes_are_created_on_access() -> None:
    made = []

    def make(index: int) -> TreeNode:
        made.append(index)
        return node(f"[{index}]", 10 + index, 11 + index)

    nodes = LazyNodes([node("count", 0, 4)], 50, make)
    assert (len(nodes), nodes.head_count, made) == (51, 1, [])
    assert [each.name for each in nodes[0:3]] == ["count", "[0]", "[1]"]
    assert nodes[-1].name == "[49]"
    assert [each.name for each in nodes][:2] == ["count", "[0]"]


def test_a_byte_belongs_to_the_smallest_node() -> None:
    nodes = [node("all", 0, 50), node("part", 5, 10), node("other", 5, 6, Block("response", b""))]
    assert index_at(nodes, BLOCK, 5) == 1
    assert index_at(nodes, BLOCK, 10) == 0
    assert index_at(nodes, BLOCK, 50) is None


def test_few_lazy_nodes_are_created_to_find_a_byte() -> None:
    made = []

    def make(index: int) -> TreeNode:
        made.append(index)
        return node(f"[{index}]", 10 + 2 * index, 11 + 2 * index)

    nodes = LazyNodes([node("count", 0, 4)], 100_000, make)
    assert nodes.at(BLOCK, 2) == 0
    assert nodes.at(BLOCK, 10 + 2 * 77_777) == 77_778
    assert nodes.at(BLOCK, 11 + 2 * 77_777) is None
    assert nodes.at(BLOCK, 9) is None
    assert nodes.at(Block("records[0]", b""), 10) is None
    assert len(made) < 100
