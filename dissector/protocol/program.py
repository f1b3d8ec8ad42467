"""
A declaration as a *program*: the table of steps that one loop runs over the bytes of a message.

The third reading of a declaration, beside its codec and its spans. A program is plain numbers, so
that the loop (`dissector.engine.tape`) can be compiled once for all messages of all APIs. Each step
is a row `[op, a, b, field]`; `field` numbers a declared field over all versions of its message.

Source: the same as of `wire`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from dissector.protocol.apis import NAMES, Kind, api
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.schema import Field, Schema, construct_of, split

# Steps. A number of `a` bytes, signed if `b`; floats and uuids as bytes of a fixed size.
NUMBER, FIXED = 0, 1
# A length of int16, int32 or compact, and so many bytes.
BYTES16, BYTES32, BYTES_COMPACT = 2, 3, 4
# A count, and so many items of at least `b` bytes; `a` is the step behind the last.
ARRAY32, ARRAY_COMPACT = 5, 6
# The end of an item, of a tagged field, of the message.
NEXT, TAG_END, END = 7, 8, 9
# A struct that may be null; `a` is the step behind it.
NULLABLE = 10
# A tag section: `b` known tags in rows from `a` on of the table of tags.
TAGS = 11

UNKNOWN_TAG = 0
"""The field number of tagged fields that no declaration names."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a field number stands for: `key` is -1 for the fields of headers."""

    key: int
    kind: Kind
    path: str
    declared: Field


@dataclass(slots=True)
class Programs:
    """
    The programs of all messages that were asked for, in one table.

    Attributes:
        code: The steps.
        tags: Rows `[tag, step]` of the tag sections.
        places: What each field number stands for; number 0 is `UNKNOWN_TAG`.
    """

    code: list[tuple[int, int, int, int]] = field(default_factory=list)
    tags: list[tuple[int, int]] = field(default_factory=list)
    places: list[Place | None] = field(default_factory=lambda: [None])
    _starts: dict[tuple[int, int, Kind], int] = field(default_factory=dict)
    _numbers: dict[tuple[int, Kind, str], int] = field(default_factory=dict)

    def start(self, key: int, version: int, kind: Kind) -> int:
        """
        Return the first step of a message, its header included; -1 where API or version is unknown.

        The program is made when it is first asked for; the table only grows.
        """
        known = self._starts.get((key, version, kind))
        if known is None:
            known = self._starts[key, version, kind] = self._make(key, version, kind)
        return known

    def numbers(self, key: int, kind: Kind) -> dict[str, int]:
        """Return the field numbers of a message by the paths of its fields, as far as made."""
        return {
            path: number
            for (at, of, path), number in self._numbers.items()
            if (at, of) == (key, kind)
        }

    def _make(self, key: int, version: int, kind: Kind) -> int:
        found = api(key) if key in NAMES else None
        if found is None or version not in found.schema(kind).versions:
            return -1
        start = len(self.code)
        if kind == "request":
            self._message(-1, kind, RequestHeader, request_header_version(key, version))
        else:
            self._message(-1, kind, ResponseHeader, response_header_version(key, version))
        self._message(key, kind, found.schema(kind), version)
        self.code.append((END, 0, 0, 0))
        return start

    def _message(self, key: int, kind: Kind, schema: Schema, version: int) -> None:
        _Writer(self, key, kind, version, version in schema.flexible).struct(schema.fields, "")

    def number(self, place: Place) -> int:
        """Return the number of a field, a new one where it has none."""
        name = place.key, place.kind, place.path
        if name not in self._numbers:
            self._numbers[name] = len(self.places)
            self.places.append(place)
        return self._numbers[name]


@dataclass(slots=True)
class _Writer:
    """Writes the steps of one message at one version."""

    programs: Programs
    key: int
    kind: Kind
    version: int
    flexible: bool

    def struct(self, fields: tuple[Field, ...], prefix: str) -> None:
        plain, tagged = split(fields, self.version)
        for each in plain:
            self.value(each, prefix + each.name)
        if self.flexible:
            self.tags(tagged, prefix)

    def value(self, each: Field, path: str) -> None:
        code = self.programs.code
        number = self.programs.number(Place(self.key, self.kind, path, each))
        if each.type == "struct":
            at = len(code)
            nullable = self.version in each.null
            if nullable:
                code.append((NULLABLE, 0, 0, number))
            self.struct(each.fields, f"{path}.")
            if nullable:
                code[at] = (NULLABLE, len(code), 0, number)
        elif each.type.startswith("[]"):
            self.array(each, path, number)
        else:
            code.append(self.plain(each.type, each.classic, number))

    def array(self, each: Field, path: str, number: int) -> None:
        code, at = self.programs.code, len(self.programs.code)
        op = ARRAY_COMPACT if self.flexible else ARRAY32
        least = construct_of(each, self.version, self.flexible).item.least
        code.append((op, 0, least, number))
        if each.type == "[]struct":
            self.struct(each.fields, f"{path}.")
        else:
            item = self.programs.number(Place(self.key, self.kind, f"{path}.[]", each))
            code.append(self.plain(each.type[2:], False, item))
        code.append((NEXT, 0, 0, 0))
        code[at] = (op, len(code), least, number)

    def plain(self, word: str, classic: bool, number: int) -> tuple[int, int, int, int]:
        flexible = self.flexible and not classic
        match word:
            case "string":
                return BYTES_COMPACT if flexible else BYTES16, 0, 0, number
            case "bytes" | "records":
                return BYTES_COMPACT if flexible else BYTES32, 0, 0, number
            case "uuid":
                return FIXED, 16, 0, number
            case "float64":
                return FIXED, 8, 0, number
            case _:
                return NUMBER, _SIZES[word], not word.startswith(("u", "b")), number

    def tags(self, tagged: list[Field], prefix: str) -> None:
        code = self.programs.code
        at = len(code)
        code.append((TAGS, 0, 0, 0))
        rows = []
        for each in tagged:
            rows.append((each.tag or 0, len(code)))
            self.value(each, prefix + each.name)
            code.append((TAG_END, at, 0, 0))
        first = len(self.programs.tags)
        self.programs.tags += rows
        code[at] = (TAGS, first, len(rows), len(code))


_SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}


@cache
def programs() -> Programs:
    """Return the table that the process shares."""
    return Programs()
