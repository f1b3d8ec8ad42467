"""
Layout of one version of a message: the size of its canonical form, and the limits of its fields.

The canonical form of a message is its shortest: each varint has the fewest bytes, and each tag
section has only the declared fields that differ from their default. So a message is canonical if
its size is the sum of the smallest sizes of its fields (`conform.screens.canonical_sizes`), and its
values are canonical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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

ANY_VALUE = -(2**63)
"""In place of a default: no value shows that it is another one."""

ZERO_ID = ANY_VALUE + 1
"""In place of a default that is the zero id."""

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
        base_size: Size of the tag sections outside arrays and tagged fields, without tags.
        fields: The number of the field, as on the tape.
        size: Size of a value, without what depends on it; in the first row of a tagged struct, with
            the tag sections of that.
        unit_size: Bytes for each unit of the value: 1 for texts and bytes, the tag sections of an
            item for arrays.
        is_compact: Whether a varint precedes the value.
        is_text: Whether the value is a text.
        has_content: Whether the value is the length of a text or of bytes, or of an id.
        list_of: Of fields that are part of the key of an item, the number of the list; else 0.
        is_topic: Whether the value is the name of a topic.
        is_tagged: Whether the field is a tagged one, or inside it.
        tag_size: Size of the number of a tag, in the first row of its field; else 0.
        default: The value of a tagged field, or of one inside it, if it is absent; ZERO_ID; or
            ANY_VALUE if columns do not say whether it has another.
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
    is_tagged: NDArray[np.bool_]
    tag_size: Ints
    default: Ints
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
    placed = [(part, each) for part in parts for each in part.all_places()]
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
        is_tagged=np.zeros(count, np.bool_),
        tag_size=np.zeros(count, np.int64),
        default=np.full(count, ANY_VALUE, np.int64),
        lowest=lowest,
        highest=highest,
    )
    key_paths: dict[tuple[int, str], int] = {}
    for row, (part, (path, place, tagged, is_first)) in enumerate(placed):
        layout.fields[row] = programs().field_number(FieldRef(part.key, kind, path, place.declared))
        part.add(layout, row, place)
        if tagged is not None:
            part.add_tag(layout, row, place, tagged if is_first else None)
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


def _has_tags(fields: tuple[Field, ...], version: int) -> bool:
    plain, tagged = split_tagged(fields, version)
    return bool(tagged) or any(_has_tags(each.fields, version) for each in plain)


class _Placed(NamedTuple):
    """
    A field of a message that has rows on the tape.

    Attributes:
        path: Its path.
        place: Its place.
        tagged: The tagged field that it is, or that it is inside of.
        is_first: Whether it is the first row of that.
    """

    path: str
    place: FieldPlace
    tagged: Field | None = None
    is_first: bool = False


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

    def all_places(self) -> Iterator[_Placed]:
        """Yield the fields of the message, in the order of the tape."""
        return self.places(self.schema.fields, "")

    def places(self, fields: tuple[Field, ...], prefix: str) -> Iterator[_Placed]:
        """Yield the fields of a struct; none of the tagged ones that have no columns."""
        plain, tagged = split_tagged(fields, self.version)
        siblings = plain + tagged
        for each in plain:
            yield from self.field_places(each, siblings, prefix)
        for each in tagged:
            if _has_nullable_struct((each,), self.version) or _has_tags(each.fields, self.version):
                continue
            for row, placed in enumerate(self.field_places(each, siblings, prefix)):
                yield placed._replace(tagged=each, is_first=row == 0)

    def field_places(
        self, each: Field, siblings: Sequence[Field], prefix: str
    ) -> Iterator[_Placed]:
        """Yield a field, with all that are inside it."""
        path = prefix + each.name
        if each.type != "struct":
            yield _Placed(path, FieldPlace(each, siblings, self.version, False))
        if each.fields:
            yield from self.places(each.fields, f"{path}.")
        elif each.type.startswith("[]"):
            yield _Placed(f"{path}.[]", FieldPlace(each, siblings, self.version, True))

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

    def add_tag(
        self, layout: MessageLayout, number: int, place: FieldPlace, tagged: Field | None
    ) -> None:
        """Add what is known of a place in a tagged field; in its first row that field is given."""
        layout.is_tagged[number] = True
        if not place.is_item:
            layout.default[number] = _default(place)
        if tagged is None:
            return
        layout.tag_size[number] = varint_sizes(np.array([tagged.tag]))[0]
        if tagged.type == "struct":
            layout.size[number] += self.tag_sections(tagged.fields)


def _default(place: FieldPlace) -> int:
    """Return the default of a field as the tape has its value, or what is in its place."""
    zero = place.declared.zero(place.version)
    if zero is None:
        return _NULL
    if place.type == "uuid":
        return ANY_VALUE if zero.int else ZERO_ID
    if place.type == "float64":
        return ANY_VALUE
    if place.type in ("string", "bytes", "records") or place.type.startswith("[]"):
        return ANY_VALUE if zero else 0
    return int(zero)


def varint_sizes(values: Ints) -> Ints:
    """Return the bytes of the shortest varints of numbers below 2**32."""
    sizes = np.ones(len(values), np.int64)
    for bits in (7, 14, 21, 28):
        sizes += values >= 1 << bits
    return sizes
