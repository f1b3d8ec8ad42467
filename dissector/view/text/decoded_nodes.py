"""Decoded keys and values as nodes: pretty-printed, with their bytes where these are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from dissector.hooks.hook_types import Record
from dissector.values.located_value import LocatedValue, without_places
from dissector.values.value_reader import DecodedValue
from dissector.view.text.escape import escaped, quoted
from dissector.view.text.tree_node import Block, Place, TreeNode
from dissector.view.text.value_text import json_text

ReadValue: TypeAlias = "Callable[[Record, bool], DecodedValue]"
"""Decodes a key or a value: given its record, and whether it is a key."""

_SHOWN_BY_RECORDS = ("text", "json")
"""Formats of texts, which the line of a record shows."""


def decoded_nodes(
    read: ReadValue,
    topic: str | None,
    record: Any,
    place_of: Callable[[str], Place | None],
) -> Iterator[TreeNode]:
    """
    Yield a node for the key and for the value of a record, if they decode, or why they do not.

    Args:
        read: Decodes them.
        topic: The topic, if it is known.
        record: A record of any magic.
        place_of: Returns where the content of `key` or `value` is; without a place, positions are
            those in the key or the value.
    """
    headers = {key: value or b"" for key, value in record.headers}
    known = Record(topic, record.key, record.value, headers, timestamp=record.timestamp)
    for side in ("key", "value"):
        data: bytes | None = getattr(record, side)
        found = read(known, side == "key")
        if found.problem is not None:
            schema = "" if found.format is None else f" as {found.format} {found.schema or ''}"
            text = f"{side}{schema.rstrip()}: {found.problem}"
            yield TreeNode.problem(escaped(text), place_of(side))
        elif found.format is not None and data is not None and not _is_shown(found):
            yield _decoded_node(side, data, found, place_of(side) or Block(side, data).whole)


def _is_shown(found: DecodedValue) -> bool:
    """Return whether the bytes show all that the decoded value says."""
    is_plain = found.schema is None and not isinstance(found.value, dict | list)
    return is_plain and found.format in _SHOWN_BY_RECORDS


def _decoded_node(side: str, data: bytes, found: DecodedValue, place: Place) -> TreeNode:
    name = f"{side} as {found.format}"
    schema = escaped(found.schema or "")
    value = found.value
    if not isinstance(value, dict | list):
        text = _scalar_text(value) + (f" ({schema})" if schema else "")
        return TreeNode(name, text, place, value=value, has_range=False)
    text = ", ".join(filter(None, (schema, count_text(value))))

    def load() -> Sequence[TreeNode]:
        located = found.located_in(data)
        if located is None or located.value != value:
            return _plain_nodes(value, place, side)
        return _located_nodes(located, place, side)

    below = load if value else None
    return TreeNode(name, text, place, below, value=value, has_range=False)


def _plain_nodes(value: Any, place: Place, path: str) -> list[TreeNode]:
    """Return the members of a value, which have the place of the whole."""
    return [
        _member(name, each, place, path, partial(_plain_nodes, each, place), is_located=False)
        for name, each in without_places(value)
    ]


def _located_nodes(around: LocatedValue, whole: Place, path: str) -> list[TreeNode]:
    """Return the members of a value with their own places."""
    nodes = []
    for name, each in around.members:
        place = Place(whole.block, whole.start + each.start, whole.start + each.end)
        load = partial(_located_nodes, each, whole)
        if not each.members:
            load = partial(_plain_nodes, each.value, place)
        has_bytes = each.start < each.end
        nodes.append(_member(name, each.value, place, path, load, is_located=has_bytes))
    return nodes


def _member(
    name: str,
    value: Any,
    place: Place,
    path: str,
    load: Callable[[str], Sequence[TreeNode]],
    *,
    is_located: bool,
) -> TreeNode:
    """Return the node of a member; items of an array have the path of the array in filters."""
    own = path if name.startswith("[") else f"{path}.{name}" if path and _is_word(name) else ""
    is_inner = isinstance(value, dict | list)
    text = count_text(value) if is_inner else _scalar_text(value)
    below = partial(load, own) if is_inner and value else None
    return TreeNode(escaped(name), text, place, below, own, value, has_range=is_located)


def _is_word(name: str) -> bool:
    return name.isidentifier() and name.isascii()


def count_text(value: dict[str, Any] | list[Any]) -> str:
    """Return the number of members of an object, or of items of an array."""
    noun = "field" if isinstance(value, dict) else "item"
    return f"{len(value):,} {noun}{'s' * (len(value) != 1)}"


def _scalar_text(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else json_text(value)
