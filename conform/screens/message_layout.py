"""
Layout of one version of a message: the size of its canonical form, and the limits of its fields.

The canonical form of a message without tagged fields is its shortest: each varint has the fewest
bytes, and each tag section is a single 0. So a message is canonical exactly if its size is the sum
of the smallest sizes of its fields, and its values are canonical.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.rule_screen import ANY_LIMITS, FieldLimits, FieldPlace, ItemKeys, Limits
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.facts import PAIR_NAME, TOPIC, fact_role
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.program import FieldRef, programs
from dissector.protocol.schema import Field, Schema, split_tagged

Ints: TypeAlias = NDArray[np.int64]

_NULL = -1
_FIXED_SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}
_FIXED_SIZES |= {"uuid": 16, "float64": 8}


@dataclass(slots=True, eq=False)
class MessageLayout:
    """
    The layout of one version of a message; the columns have a row for each of its fields.

    Attributes:
        step: The first instruction of its program.
        is_flexible: Whether the version of the body is flexible.
        base_size: Size of the tag sections outside arrays.
        fields: The number of the field, as on the tape.
        size: Size of a value, without what depends on it.
        unit_size: Bytes for each unit of the value: 1 for texts and bytes, the tag sections of an
            item for arrays.
        is_compact: Whether a varint precedes the value.
        is_text: Whether the value is a text.
        has_content: Whether the value is the length of a text or of bytes, or of an id.
        list_of: Of fields that are part of the key of an item, the number of the list; else 0.
        is_topic: Whether the value is the name of a topic.
        lowest: Of each field the lowest values, one for each of the requested limits.
        highest: Likewise.
    """

    step: int
    is_flexible: bool
    base_size: int
    fields: Ints
    size: Ints
    unit_size: Ints
    is_compact: NDArray[np.bool_]
    is_text: NDArray[np.bool_]
    has_content: NDArray[np.bool_]
    list_of: Ints
    is_topic: NDArray[np.bool_]
    lowest: Ints
    highest: Ints


def canonical_limits(place: FieldPlace) -> Limits | None:
    """Return the limits of canonical values: no undeclared null, booleans 0 and 1."""
    if place.type == "bool":
        return 0, 1
    if place.type in ("string", "bytes", "records") or place.type.startswith("[]"):
        may_be_null = place.version in place.declared.null and not place.is_item
        return (_NULL if may_be_null else 0), ANY_LIMITS[1]
    return None


@per_schemas
def message_layout(
    key: int,
    version: int,
    kind: Kind,
    limits: tuple[FieldLimits, ...] = (),
    keys: ItemKeys | None = None,
) -> MessageLayout | None:
    """
    Return the layout of a message with some limits, and the keys of items.

    None for a message without a program, or with a struct that may be null: the presence of that is
    not in columns.
    """
    step = programs().start(key, version, kind)
    found = api(key)
    if step < 0 or found is None:
        return None
    schema = found.schema(kind)
    is_request = kind == "request"
    header = RequestHeader if is_request else ResponseHeader
    header_version = (request_header_version if is_request else response_header_version)(
        key, version
    )
    parts = [_Part(-1, kind, header, header_version), _Part(key, kind, schema, version)]
    if any(_has_nullable_struct(each.schema.fields, each.version) for each in parts):
        return None
    placed = [(part, path, place) for part in parts for path, place in part.all_places()]
    count = len(placed)
    lowest, highest = (np.full((count, len(limits)), each, np.int64) for each in ANY_LIMITS)
    layout = MessageLayout(
        step,
        version in schema.flexible,
        sum(each.tag_sections(each.schema.fields) for each in parts),
        fields=np.zeros(count, np.int64),
        size=np.zeros(count, np.int64),
        unit_size=np.zeros(count, np.int64),
        is_compact=np.zeros(count, np.bool_),
        is_text=np.zeros(count, np.bool_),
        has_content=np.zeros(count, np.bool_),
        list_of=np.zeros(count, np.int64),
        is_topic=np.zeros(count, np.bool_),
        lowest=lowest,
        highest=highest,
    )
    key_paths: dict[tuple[int, str], int] = {}
    for row, (part, path, place) in enumerate(placed):
        layout.fields[row] = programs().field_number(FieldRef(part.key, kind, path, place.declared))
        part.add(layout, row, place)
        layout.list_of[row] = key_paths.get((part.key, path), 0)
        if keys is not None and place.type.startswith("[]"):
            names = keys(place)
            key_paths |= {(part.key, f"{path}.{name or '[]'}"): row + 1 for name in names}
        for column, limit in enumerate(limits):
            layout.lowest[row, column], layout.highest[row, column] = limit(place) or ANY_LIMITS
    return layout


def _has_nullable_struct(fields: tuple[Field, ...], version: int) -> bool:
    plain, _ = split_tagged(fields, version)
    return any(
        (each.type == "struct" and version in each.null)
        or _has_nullable_struct(each.fields, version)
        for each in plain
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The header or the body of a message; the key of headers is -1, as in programs."""

    key: int
    kind: Kind
    schema: Schema
    version: int

    @property
    def is_flexible(self) -> bool:
        return self.version in self.schema.flexible

    def all_places(self) -> Iterator[tuple[str, FieldPlace]]:
        """Yield the path and the place of each field of the message that has rows on the tape."""
        return self.places(self.schema.fields, "")

    def places(self, fields: tuple[Field, ...], prefix: str) -> Iterator[tuple[str, FieldPlace]]:
        """Yield the same of the fields of a struct."""
        plain, tagged = split_tagged(fields, self.version)
        for each in plain:
            path = prefix + each.name
            if each.type != "struct":
                yield path, FieldPlace(each, plain + tagged, self.version, False)
            if each.fields:
                yield from self.places(each.fields, f"{path}.")
            elif each.type.startswith("[]"):
                yield f"{path}.[]", FieldPlace(each, plain + tagged, self.version, True)

    def tag_sections(self, fields: tuple[Field, ...]) -> int:
        """Return the number of tag sections of a struct, those in arrays apart."""
        if not self.is_flexible:
            return 0
        plain, _ = split_tagged(fields, self.version)
        return 1 + sum(self.tag_sections(each.fields) for each in plain if each.type == "struct")

    def add(self, layout: MessageLayout, number: int, place: FieldPlace) -> None:
        """Add the size and the kind of a field."""
        declared, type = place.declared, place.type
        if self.key >= 0 and type == "string":
            layout.is_topic[number] = fact_role(declared, place.siblings) in (TOPIC, PAIR_NAME)
        layout.has_content[number] = type in ("string", "bytes", "records", "uuid", "float64")
        if type in _FIXED_SIZES:
            layout.size[number] = _FIXED_SIZES[type]
            return
        is_compact = self.is_flexible and (place.is_item or not declared.classic)
        layout.is_compact[number] = is_compact
        layout.is_text[number] = type == "string"
        if not is_compact:
            layout.size[number] = 2 if type == "string" else 4
        if not type.startswith("[]"):
            layout.unit_size[number] = 1
        elif declared.type == "[]struct":
            layout.unit_size[number] = self.tag_sections(declared.fields)
