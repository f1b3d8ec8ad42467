"""Parts of a value: members of JSON, lines of a long text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from dissector.protocol.records.batch_totals import batch_totals, crcs_are_right
from dissector.view.text.escape import escaped, quoted, safe_json
from dissector.view.text.tree_node import Load, Place, TreeNode
from dissector.view.text.value_text import json_text

_SHOWN = 200
"""Characters of a value in its own line."""
_LINE = 100
"""Characters in a line of a long text."""
_MOST_JSON = 1 << 20
_BRACKETS = (("{", "}"), ("[", "]"))


def inside_of(node: TreeNode) -> Load | None:
    """Return a function that opens the value of a leaf; None if its line shows the whole value."""
    if node.load is not None or node.is_masked or not isinstance(node.value, str | bytes):
        return None
    text = _text(node.value)
    if not text:
        return None
    looks_like_json = len(text) <= _MOST_JSON and (text[0], text.rstrip()[-1:]) in _BRACKETS
    if looks_like_json or len(text) > _SHOWN or "\n" in text.strip():
        return partial(_open, text, node.place, looks_like_json)
    return None


def records_text(node: TreeNode) -> str:
    """
    Return what a `records` field holds: `1 batch, 12 records, zstd, offsets 0-11, crc ok`.

    Empty for other fields, and for those without a whole batch.
    """
    data = node.value
    if node.is_masked or node.name != "records" or not isinstance(data, bytes):
        return ""
    found = batch_totals(data)
    if not found.batches:
        return ""
    batches = f"{found.batches:,} batch{'es' * (found.batches != 1)}"
    records = f"{found.records:,} record{'s' * (found.records != 1)}"
    offsets = f"{found.first_offset}-{found.last_offset}"
    parts = [batches, records, found.codec, f"offsets {offsets}"]
    parts += ["crc ok" if crcs_are_right(data) else "crc wrong", f"{len(data):,} bytes"]
    return ", ".join([*parts, *(["cut"] if found.is_cut else [])])


def is_decoded(node: TreeNode) -> bool:
    """Return whether a node is a decoded key or value, or a field of one."""
    return node.path.startswith(("key.", "value.")) or node.name.startswith(
        ("key as ", "value as ")
    )


def value_text(node: TreeNode) -> str:
    """Return the value of a field: text unchanged, bytes as hex, decoded ones as indented JSON."""
    if is_decoded(node) and isinstance(node.value, list | dict):
        return safe_json(json.dumps(node.value, indent=2, ensure_ascii=False))
    if node.is_masked or node.value is None or isinstance(node.value, list | dict | tuple):
        return node.text
    if isinstance(node.value, bytes):
        return _text(node.value) or node.value.hex()
    return str(node.value)


def _text(value: str | bytes) -> str | None:
    """Return a value as text; None if it looks binary."""
    if isinstance(value, str):
        return value
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    is_binary = any(character < " " and character not in "\t\n\r" for character in text[:_SHOWN])
    return None if is_binary else text


def _open(text: str, place: Place | None, looks_like_json: bool) -> Sequence[TreeNode]:
    if looks_like_json:
        try:
            return _members(json.loads(text), place)
        except (ValueError, RecursionError):
            pass
    return [_plain("", escaped(part), place) for part in _parts(text)]


def _parts(text: str) -> list[str]:
    """Return the lines of a text; split long lines."""
    return [
        line[start : start + _LINE]
        for line in text.split("\n")
        for start in range(0, max(len(line), 1), _LINE)
    ]


def _members(value: Any, place: Place | None) -> list[TreeNode]:
    """Return the members of an object, or the elements of an array."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        _member(f"[{key}]" if isinstance(key, int) else escaped(key), each, place)
        for key, each in items
    ]


def _member(name: str, value: Any, place: Place | None) -> TreeNode:
    if isinstance(value, dict | list):
        node = _plain(name, f"{len(value):,} item{'s' * (len(value) != 1)}", place)
        node.load = partial(_members, value, place) if value else None
    else:
        shown = quoted(value) if isinstance(value, str) else json_text(value)
        node = _plain(name, shown, place)
    node.value = value
    return node


def _plain(name: str, text: str, place: Place | None) -> TreeNode:
    """Return a node that marks all bytes of the value."""
    return TreeNode(name, text, place, has_range=False)
