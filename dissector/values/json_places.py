"""
Where the members of a JSON text are in its bytes.

All structure of JSON is ASCII, so its bytes are divided without decoding them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dissector.values.located_value import MAX_PARTS, LocatedValue, item_name
from dissector.values.value_leaves import Leaf, LeafKind, Leaves
from dissector.values.value_limits import ValueProblem

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


_NAME_END = re.compile(rb"\s*:")
_WORDS = (b"t", b"f", b"n")
"""What `true`, `false` and `null` begin with."""


class _Open:
    """An object or an array that is not yet at its end."""

    def __init__(self, start: int, *, is_object: bool) -> None:
        self.start = start
        self.is_object = is_object
        self.name: str | None = None
        self.members: list[tuple[str, LocatedValue]] = []

    def add(self, part: LocatedValue) -> None:
        """Add a member; an object's has its name before it."""
        self.members.append((self.name or "", part))
        self.name = None

    def closed(self, end: int) -> LocatedValue:
        """Return the object or the array."""
        if self.is_object:
            value: Any = {name: each.value for name, each in self.members}
            return LocatedValue(value, self.start, end, self.members)
        items = [(item_name(at), each) for at, (_, each) in enumerate(self.members)]
        return LocatedValue([each.value for _, each in items], self.start, end, items)


def located_json(data: bytes, at: int = 0) -> LocatedValue | None:
    """Return the parts of a valid JSON text; None if they are too many."""
    around: list[_Open] = []
    for count, token in enumerate(_TOKEN.finditer(data, at)):
        text, start, end = token[0], token.start(), token.end()
        if count > MAX_PARTS:
            return None
        match text[:1]:
            case b"{" | b"[":
                around.append(_Open(start, is_object=text == b"{"))
                continue
            case b"," | b":":
                continue
            case b"}" | b"]":
                part = around.pop().closed(end)
            case _:
                found = json.loads(text)
                if around and around[-1].is_object and around[-1].name is None:
                    around[-1].name = found
                    continue
                part = LocatedValue(found, start, end)
        if not around:
            return part
        around[-1].add(part)
    return None


def json_leaves(data: bytes, at: int = 0, words: frozenset[bytes] = frozenset()) -> Leaves | None:
    """Return the texts, but for some words, and the numbers of a valid JSON; None if too many."""
    leaves = Leaves()
    try:
        for token in _TOKEN.finditer(data, at):
            start, end, first = token.start(), token.end(), token[0][:1]
            if first == b'"':
                if _NAME_END.match(data, end) is None and token[0] not in words:
                    leaves.add(Leaf(LeafKind.JSON_TEXT, start + 1, end - 1))
            elif first not in b"{}[],:" and first not in _WORDS:
                leaves.add(Leaf(LeafKind.JSON_NUMBER, start, end))
    except ValueProblem:
        return None
    return leaves


def words_of_schema(text: str) -> frozenset[bytes]:
    """Return the texts that a JSON schema allows by `enum` and `const`, as JSON."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return frozenset()
    found: set[bytes] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            allowed = part.get("enum")
            listed = [part.get("const"), *(allowed if isinstance(allowed, list) else ())]
            found |= {_quoted(each) for each in listed if isinstance(each, str)}
        if isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part
    return frozenset(found)


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")
