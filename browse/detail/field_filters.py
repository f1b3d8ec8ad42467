"""Display filters for field values."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from browse.detail.value_nodes import is_decoded
from dissector.errors import FilterError
from dissector.filter import Row, parse
from dissector.protocol.error_codes import error_name
from dissector.view.text.tree_node import TreeNode

_LONGEST = 200
"""Maximum length of values in filters; longer values are tested by prefix."""


def filter_of(node: TreeNode, exchange: Row) -> str | None:
    """Return a filter for a field that its exchange passes; None if there is no such filter."""
    if not node.path:
        return None
    if is_decoded(node):
        return f"{node.path}{_test(node)}"  # of records: tested when it is applied
    candidates = [f"{node.path}{_test(node)}", node.path, f"not {node.path}"]
    return next((text for text in candidates if _passes(text, exchange)), None)


def column_of(node: TreeNode) -> str | None:
    """Return the column name of a field; None if filters cannot name it."""
    if not node.path or is_decoded(node):
        return None
    try:
        parse(node.path)
    except FilterError:
        return None
    return node.path


def _passes(text: str, exchange: Row) -> bool:
    try:
        return parse(text).matches(exchange)
    except FilterError:
        return False


def _test(node: TreeNode) -> str:
    """Return a test for a value; empty for secrets and values without a literal."""
    value: Any = node.value
    if node.is_masked or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    match value:
        case None:
            return " == null"
        case bool():
            return f" == {str(value).lower()}"
        case int() if node.path.endswith("error_code"):
            return f" == {error_name(value)}"
        case int() | float() | UUID():
            return f" == {value}"
        case str() if len(value) <= _LONGEST:
            return f" == {_quoted(value)}"
        case str():
            return f" contains {_quoted(value[:_LONGEST])}"
        case bytes() if len(value) > _LONGEST or "records" in node.path:
            return f" contains 0x{value[:_LONGEST].hex()}" if value else ""
        case bytes():
            return f" == 0x{value.hex()}" if value else ' == ""'
        case _:
            return ""


def _quoted(text: str) -> str:
    """Return a text as a literal, with escaped control characters."""
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    code = ord(character)
    return character if character.isprintable() or code > 0xFFFF else f"\\u{code:04x}"
