"""
Names in a filter: columns of `pairs`, Wireshark's names for them, and body fields.

The path of a body field is checked against the declarations of all APIs, which are loaded only when
a filter has such a path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dissector.filter import kinds
from dissector.filter.literals import suggestion
from dissector.protocol.api import Kind as Side
from dissector.protocol.apis import all_apis
from dissector.protocol.context import per_schemas
from dissector.protocol.schema import Field


@dataclass(frozen=True, slots=True)
class Column:
    """
    A column of `pairs` or `records`.

    Attributes:
        name: The column.
        port: Whether only the port of its address is tested.
        empty: Value that an empty list stands for in a comparison: an exchange without errors has
            NONE.
        is_record_column: Whether it is a column of `records`.
        part: For headers, the part of each that is tested: `key` or `value`.
    """

    name: str
    port: bool = False
    empty: str | None = None
    is_record_column: bool = False
    part: str | None = None


@dataclass(frozen=True, slots=True)
class BodyPath:
    """A field of a decoded body: `request` or `response`, and the path of the field."""

    kind: Side
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.kind, *self.path))


Source: TypeAlias = Column | BodyPath


@dataclass(frozen=True, slots=True)
class Name:
    """
    A name as written in the filter.

    Attributes:
        text: As written.
        sources: The sources of its values: a test is true if it is true for a value of any of them.
        kinds: The possible kinds of its values; several where APIs differ.
    """

    text: str
    sources: tuple[Source, ...] = field(compare=False)
    kinds: tuple[kinds.Kind, ...] = field(compare=False)

    def __str__(self) -> str:
        return self.text


class UnknownName(Exception):
    """No such name; `offset` is the position of the unknown part in it."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason)
        self.offset = offset


_COLUMNS: dict[str, kinds.Kind] = {
    "capture": kinds.text,
    "connection": kinds.number,
    "client": kinds.endpoint,
    "broker": kinds.endpoint,
    "api_key": kinds.api_key,
    "api": kinds.api,
    "api_version": kinds.number,
    "correlation_id": kinds.number,
    "client_id": kinds.text,
    "status": kinds.status,
    "request_time_ns": kinds.number,
    "response_time_ns": kinds.number,
    "latency_ms": kinds.number,
    "request_bytes": kinds.number,
    "response_bytes": kinds.number,
    "errors": kinds.error,
    "topics": kinds.text,
    "problems": kinds.text,
}

_ALIASES = {
    "error": "errors",
    "topic": "topics",
    "problem": "problems",
    # Wireshark's names.
    "kafka.api_key": "api_key",
    "kafka.request_key": "api_key",
    "kafka.response_key": "api_key",
    "kafka.api_version": "api_version",
    "kafka.request.version": "api_version",
    "kafka.response.version": "api_version",
    "kafka.correlation_id": "correlation_id",
    "kafka.client_id": "client_id",
    "kafka.topic_name": "topics",
    "kafka.error": "errors",
    "tcp.stream": "connection",
}

_SIDES = {"addr": ("client", "broker"), "src": ("client",), "dst": ("broker",)}

# `src` is the sender of the request, because an exchange goes both ways.
_ADDRESSES = {
    **{f"{ip}.{end}": sides for ip in ("ip", "ipv6") for end, sides in _SIDES.items()},
    "ip.host": ("client", "broker"),
}
_PORTS = {
    "tcp.port": ("client", "broker"),
    "tcp.srcport": ("client",),
    "tcp.dstport": ("broker",),
}
_BODIES = {
    "kafka.required_acks": "request.acks",
    "kafka.throttle_time": "response.throttle_time_ms",
}
_ALL_NAMES = (*_COLUMNS, *_ALIASES, *_ADDRESSES, *_PORTS, *_BODIES, "kafka.len", "kafka")


def _record_column(name: str, part: str | None = None) -> Column:
    return Column(name, is_record_column=True, part=part)


_NUMBER_COLUMNS = ("time_ns", "partition", "offset", "timestamp_ms", "magic")
_PRODUCER_COLUMNS = ("producer_id", "producer_epoch", "sequence")
_RECORD_NAMES: dict[str, tuple[Column, kinds.Kind]] = {
    **{
        name: (_record_column("topic"), kinds.text)
        for name in ("topic", "topics", "kafka.topic_name")
    },
    **{name: (_record_column("error"), kinds.error) for name in ("error", "errors", "kafka.error")},
    **{
        name: (_record_column(name), kinds.number)
        for name in (*_NUMBER_COLUMNS, *_PRODUCER_COLUMNS)
    },
    **{name: (_record_column(name), kinds.text) for name in ("topic_id", "codec", "control")},
    **{name: (_record_column(name), kinds.binary) for name in ("key", "value")},
    "transactional": (_record_column("transactional"), kinds.boolean),
    "headers": (_record_column("headers", "key"), kinds.text),
    "headers.key": (_record_column("headers", "key"), kinds.text),
    "headers.value": (_record_column("headers", "value"), kinds.binary),
}
"""Names where each row is a record; they take precedence over all others."""


def resolve(text: str, *, records: bool = False) -> Name:
    """
    Return the sources and kinds of a name.

    Args:
        text: The name.
        records: Whether rows are records, with their exchanges.

    Raises:
        UnknownName: There is no such name.
    """
    if records and text in _RECORD_NAMES:
        found, kind = _RECORD_NAMES[text]
        return Name(text, (found,), (kind,))
    column = _ALIASES.get(text, text)
    if column in _COLUMNS:
        empty = "NONE" if column == "errors" else None
        return Name(text, (Column(column, empty=empty),), (_COLUMNS[column],))
    if text in _ADDRESSES:
        return Name(text, tuple(Column(side) for side in _ADDRESSES[text]), (kinds.endpoint,))
    if text in _PORTS:
        sides = tuple(Column(side, port=True) for side in _PORTS[text])
        return Name(text, sides, (kinds.number,))
    if text == "kafka.len":
        return Name(text, (Column("request_bytes"), Column("response_bytes")), (kinds.number,))
    return _body_name(text, _BODIES.get(text, text))


def _body_name(text: str, dotted: str) -> Name:
    side, *path = dotted.split(".")
    match side:
        case "request" | "response" if path:
            return Name(text, (BodyPath(side, tuple(path)),), _kinds_at(side, path))
        case "request" | "response":
            raise UnknownName(f"{side} is a body; name a field of it, such as {side}.topics")
        case _:
            hint = suggestion(text, _ALL_NAMES)
            if text in _RECORD_NAMES:
                hint = "; it is a column of `kafkashark records`"
            elif similar_paths := _paths_ending_in("request", text) or _paths_ending_in(
                "response", text
            ):
                hint = f"; did you mean {min(similar_paths, key=len)}?"
            raise UnknownName(f"unknown name {text[:60]!r}{hint}")


@dataclass(slots=True)
class _PathNode:
    """All fields, over all APIs, at one path."""

    kinds: dict[kinds.Kind, None] = field(default_factory=dict)
    children: dict[str, _PathNode] = field(default_factory=dict)


def _kinds_at(side: Side, path: list[str]) -> tuple[kinds.Kind, ...]:
    node = _path_tree(side)
    offset = len(side) + 1
    for depth, segment in enumerate(path):
        child = node.children.get(segment)
        if child is None:
            parent = ".".join((side, *path[:depth]))
            raise UnknownName(_unknown_field_message(side, parent, segment, node), offset)
        node = child
        offset += len(segment) + 1
    return tuple(node.kinds)


def _unknown_field_message(side: Side, parent: str, segment: str, node: _PathNode) -> str:
    if not node.children:
        return f"{parent} has no fields"
    other: Side = "response" if side == "request" else "request"
    elsewhere = _paths_ending_in(side, segment) or _paths_ending_in(other, segment)
    hint = suggestion(segment, node.children)
    if elsewhere:
        hint = f"; did you mean {min(elsewhere, key=len)}?"
    return f"no API has a field {segment[:60]!r} in {parent}{hint}"


def _paths_ending_in(side: Side, segment: str) -> list[str]:
    """Return the paths that end with a name."""
    paths = []
    queue: list[tuple[str, _PathNode]] = [(side, _path_tree(side))]
    while queue:
        path, node = queue.pop()
        paths += [f"{path}.{segment}"] if segment in node.children else []
        queue += [(f"{path}.{name}", child) for name, child in node.children.items()]
    return paths


@per_schemas
def _path_tree(side: Side) -> _PathNode:
    root = _PathNode()
    for known_api in all_apis():
        _add_fields(root, known_api.schema(side).fields)
    return root


def _add_fields(node: _PathNode, fields: tuple[Field, ...]) -> None:
    for each in fields:
        child = node.children.setdefault(each.name, _PathNode())
        child.kinds[_kind(each)] = None
        _add_fields(child, each.fields)


_KINDS = {
    "bool": kinds.boolean,
    "string": kinds.text,
    "uuid": kinds.uuid,
    "bytes": kinds.binary,
    "records": kinds.binary,
    "struct": kinds.struct,
}


def _kind(declared: Field) -> kinds.Kind:
    """Return the kind of a field; of an array, that of its elements."""
    if declared.name.endswith("error_code"):
        return kinds.error
    if declared.name == "api_key":
        return kinds.api_key
    return _KINDS.get(declared.type.removeprefix("[]"), kinds.number)
