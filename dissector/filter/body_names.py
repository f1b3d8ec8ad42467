"""Paths of body fields, over all APIs and versions, as names in a filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from dissector.errors import suggestion
from dissector.filter import kinds
from dissector.filter.operands import BodyPath, Name, UnknownName
from dissector.protocol.api import Kind as Side
from dissector.protocol.apis import all_apis
from dissector.protocol.context import per_schemas
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Field

SIDES: tuple[Side, ...] = ("request", "response")

MAX_SUGGESTIONS = 2


@dataclass(slots=True)
class _PathNode:
    """All fields, over all APIs, at one path."""

    kinds: dict[kinds.Kind, None] = field(default_factory=dict)
    apis: dict[str, None] = field(default_factory=dict)
    children: dict[str, _PathNode] = field(default_factory=dict)


def body_name(text: str, side: Side, path: list[str]) -> Name:
    """
    Return the name of a path.

    Raises:
        UnknownName: No API has such a field.
    """
    node = _path_tree(side)
    offset = len(side) + 1
    for depth, segment in enumerate(path):
        child = node.children.get(segment)
        if child is None:
            parent = ".".join((side, *path[:depth]))
            raise UnknownName(_unknown_field_message(side, parent, segment, node), offset)
        node = child
        offset += len(segment) + 1
    return Name(text, (BodyPath(side, tuple(path)),), tuple(node.kinds))


def names_matching(text: str, patterns: tuple[str, ...]) -> Name:
    """Return a name for all paths that match one of some patterns; a `*` may span dots."""
    sources: dict[BodyPath, None] = {}
    found: dict[kinds.Kind, None] = {}
    for path, node in _all_paths():
        if any(fnmatchcase(path, pattern) for pattern in patterns):
            side, *names = path.split(".")
            known: Side = "request" if side == "request" else "response"
            sources[BodyPath(known, tuple(names))] = None
            found |= {kind: None for kind in node.kinds if kind is not kinds.struct}
    return Name(text, tuple(sources), tuple(found) or (kinds.struct,))


def body_fields() -> Iterator[tuple[str, str, str]]:
    """Yield each path, the kind of its values, and the APIs that have it."""
    for path, node in _all_paths():
        titles = dict.fromkeys(kind.title for kind in node.kinds)
        yield path, " or ".join(titles), ", ".join(node.apis)


def similar_paths(segment: str, side: Side = "request") -> str:
    """
    Return the paths that end with a name, as a suggestion; empty without any.

    A field of the body itself comes first, then fields of a side, then those of APIs with low
    numbers, which are the frequent ones.
    """
    found = [(path, list(node.apis)) for path, node in _all_paths() if path.endswith(f".{segment}")]
    ranks = {each.name: each.key for each in all_apis()}
    found.sort(key=lambda each: (not each[0].startswith(side), ranks[each[1][0]]))
    if own := [path for path, _ in found if path.count(".") == 1]:
        return own[0]
    shown = [f"{path} ({apis[0]})" for path, apis in found[:MAX_SUGGESTIONS]]
    return " or ".join(shown)


def _unknown_field_message(side: Side, parent: str, segment: str, node: _PathNode) -> str:
    if not node.children:
        return f"{parent} has no fields"
    name, bracket, _ = segment.partition("[")
    if bracket and name in node.children:
        hint = f"; a path has no index: {parent}.{name} is all items"
    elif elsewhere := similar_paths(segment, side):
        hint = f"; did you mean {elsewhere}?"
    else:
        hint = suggestion(segment, node.children)
    return f"no API has a field {segment[:60]!r} in {parent}{hint}"


@per_schemas
def _all_paths() -> list[tuple[str, _PathNode]]:
    """Return all paths in order, with their nodes."""
    paths: list[tuple[str, _PathNode]] = []
    queue: list[tuple[str, _PathNode]] = [(side, _path_tree(side)) for side in SIDES]
    while queue:
        path, node = queue.pop()
        below = [(f"{path}.{name}", child) for name, child in node.children.items()]
        paths += below
        queue += below
    return sorted(paths, key=lambda each: each[0])


@per_schemas
def _path_tree(side: Side) -> _PathNode:
    root = _PathNode()
    for known_api in all_apis():
        _add_fields(root, known_api.schema(side).fields, known_api.name)
    return root


def _add_fields(node: _PathNode, fields: tuple[Field, ...], api: str) -> None:
    for each in fields:
        child = node.children.setdefault(each.name, _PathNode())
        child.kinds[_kind(each)] = None
        child.apis[api] = None
        _add_fields(child, each.fields, api)


_KINDS = {
    "bool": kinds.boolean,
    "string": kinds.text,
    "uuid": kinds.uuid,
    "bytes": kinds.binary,
    "records": kinds.records,
    "struct": kinds.struct,
}


def _kind(declared: Field) -> kinds.Kind:
    """Return the kind of a field; of an array, its elements'."""
    if meaning_of(declared).role is Role.ERROR:
        return kinds.error
    if declared.name == "api_key":
        return kinds.api_key
    if declared.type == "int64" and declared.name.removesuffix("_ms").endswith("timestamp"):
        return kinds.time_ms
    return _KINDS.get(declared.type.removeprefix("[]"), kinds.number)
