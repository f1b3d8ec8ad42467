"""The batches of a `records` field as nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dissector.protocol.records import Batch, LegacyBatch, RecordBatch, layout
from dissector.protocol.records.field import UnreadBatch
from dissector.view.text.annotations import meaning
from dissector.view.text.escape import escaped, hexed
from dissector.view.text.field_nodes import MASK
from dissector.view.text.record_nodes import RecordOptions, record_nodes
from dissector.view.text.tree_node import Block, Place, TreeNode


@dataclass(frozen=True, slots=True)
class RecordsPlace:
    """
    Place of the content of a `records` field.

    Attributes:
        block: The bytes that hold it; None if they are unknown.
        base: Its offset there.
        path: The field in display filters; empty without one.
    """

    block: Block | None
    base: int = 0
    path: str = ""

    def at(self, start: int, end: int) -> Place | None:
        """Return a place in the content."""
        return None if self.block is None else Place(self.block, self.base + start, self.base + end)


def batch_nodes(
    batches: Sequence[Batch], field: RecordsPlace, options: RecordOptions
) -> list[TreeNode]:
    """
    Return the nodes of the batches of one field.

    Args:
        batches: As returned by `parse_records`.
        field: Where they are.
        options: How to show the records.
    """
    nodes = []
    for index, batch in enumerate(batches):
        name = f"[{index}]"
        match batch:
            case UnreadBatch():
                nodes.append(_unread(name, batch, field, options))
            case RecordBatch():
                title = f"record batch of magic 2, {batch.codec}"
                end = batch.position + layout.LENGTH_END + batch.batch_length
                nodes.append(_decoded(name, title, batch, field.at(batch.position, end)))
                _set_load(nodes[-1], batch, field, options)
            case LegacyBatch():
                title = f"message of magic {batch.magic}, {batch.codec}"
                end = batch.position + layout.LENGTH_END + batch.message_size
                nodes.append(_decoded(name, title, batch, field.at(batch.position, end)))
                _set_load(nodes[-1], batch, field, options)
    return nodes


def _problems(batch: Batch, field: RecordsPlace) -> list[TreeNode]:
    nodes = []
    for problem in batch.problems:
        place, at = None, ""
        if field.block is not None and problem.position is not None:
            place = field.at(problem.position, problem.position + 1)
            at = f" at byte {field.base + problem.position}"
        nodes.append(TreeNode.problem(f"{problem.path}{at}: {escaped(problem.what)}", place))
    return nodes


def _unread(name: str, batch: UnreadBatch, field: RecordsPlace, options: RecordOptions) -> TreeNode:
    state = "a batch that is cut off" if batch.partial else "not read"
    shown = MASK if options.is_secret else hexed(batch.data)
    place = field.at(batch.position, batch.position + len(batch.data))
    return TreeNode(
        name,
        f"{state}: {shown}",
        place,
        lambda: _problems(batch, field),
        is_masked=options.is_secret,
    )


def _decoded(
    name: str, title: str, batch: RecordBatch | LegacyBatch, place: Place | None
) -> TreeNode:
    count = len(batch.records)
    return TreeNode(name, f"{title}, {count:,} record{'s' * (count != 1)}", place)


def _set_load(
    node: TreeNode, batch: RecordBatch | LegacyBatch, field: RecordsPlace, options: RecordOptions
) -> None:
    def load() -> Sequence[TreeNode]:
        head = [*_header(batch, field), *_problems(batch, field)]
        at = field.at(batch.position, batch.position)
        return record_nodes(batch, node.name, at, head, options)

    node.load = load


def _header(batch: RecordBatch | LegacyBatch, field: RecordsPlace) -> Iterator[TreeNode]:
    header = layout.BATCH
    if isinstance(batch, LegacyBatch):
        header = layout.MESSAGE_1 if batch.magic else layout.MESSAGE_0
    at = batch.position
    for member in header.construct.members:
        value = getattr(batch, member.name)
        if member.name == "crc":
            text = f"0x{value:08x} ({'correct' if batch.crc_ok else 'incorrect'})"
        else:
            description = meaning(member.name, value)
            text = f"{value} ({description})" if description else f"{value}"
        end = at + member.construct.min_bytes
        yield TreeNode(member.name, text, field.at(at, end), value=value)
        at = end
