"""
A declaration as a *program*: instructions that an interpreter runs over the bytes of a message.

This is the third form derived from a declaration, beside its codec and its spans. A program
consists of numbers only, so that the interpreter (`dissector.engine.tape.tape`) is compiled once
for all messages of all APIs. Each instruction is a row `[op, a, b, field]`; `field` is the number
of a declared field over all versions of its message.

Source: the same as of `wire`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.schema import Field, Schema, split_tagged

# Operations. An integer of `a` bytes, signed if `b`; a float or uuid as `a` bytes.
NUMBER, FIXED = 0, 1
# A length (int16, int32 or compact), followed by that number of bytes.
BYTES16, BYTES32, BYTES_COMPACT = 2, 3, 4
# A count, then that number of items of at least `b` bytes; `a` is the instruction after the last
# item.
ARRAY32, ARRAY_COMPACT = 5, 6
# The end of an item, of a tagged field, of the message.
NEXT, TAG_END, END = 7, 8, 9
# A struct that may be null; `a` is the instruction after it.
NULLABLE = 10
# A tag section: `b` declared tags in the rows of the table of tags from `a` on.
TAGS = 11

Instruction: TypeAlias = tuple[int, int, int, int]

UNKNOWN_TAG = 0
"""The field number of tagged fields that are not declared."""


@dataclass(frozen=True, slots=True)
class FieldRef:
    """The field of a field number; `key` is -1 for the fields of headers."""

    key: int
    kind: Kind
    path: str
    declared: Field


@dataclass(slots=True, eq=False, repr=False)
class ProgramTable:
    """
    The programs of all messages that were requested so far, in one table.

    Attributes:
        code: The instructions.
        tags: Rows `[tag, instruction]` of the tag sections.
        field_refs: The field of each field number; number 0 is `UNKNOWN_TAG`.
    """

    code: list[Instruction] = field(default_factory=list)
    tags: list[tuple[int, int]] = field(default_factory=list)
    field_refs: list[FieldRef | None] = field(default_factory=lambda: [None])
    _starts: dict[tuple[int, int, Kind], int] = field(default_factory=dict)
    _numbers: dict[tuple[int, Kind, str, str, bool], int] = field(default_factory=dict)

    def start(self, key: int, version: int, kind: Kind) -> int:
        """
        Return a message's first instruction, in its header; -1 for an unknown API or version.

        The program is made at its first use; the table only grows.
        """
        start = self._starts.get((key, version, kind))
        if start is None:
            start = self._starts[key, version, kind] = self._make(key, version, kind)
        return start

    def field_numbers(self, key: int, kind: Kind) -> dict[str, int]:
        """Return a message's field numbers by path, of the programs made so far."""
        return {
            path: number
            for (of_key, of_kind, path, _, _), number in self._numbers.items()
            if (of_key, of_kind) == (key, kind)
        }

    def _make(self, key: int, version: int, kind: Kind) -> int:
        found = api(key)
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
        flexible = version in schema.flexible
        self._writer(key, kind, version, flexible).struct(schema.fields, "")

    def _writer(self, key: int, kind: Kind, version: int, flexible: bool) -> ProgramWriter:
        return ProgramWriter(self, key, kind, version, flexible)

    def field_number(self, ref: FieldRef) -> int:
        """Return the number of a field; assign one if needed."""
        declared = ref.declared
        identity = ref.key, ref.kind, ref.path, declared.type, declared.secret
        if identity not in self._numbers:
            self._numbers[identity] = len(self.field_refs)
            self.field_refs.append(ref)
        return self._numbers[identity]


@dataclass(slots=True, eq=False, repr=False)
class ProgramWriter:
    """
    Writes the instructions of one message at one version.

    Attributes:
        table: The table to write to.
        key: The API key; -1 for headers.
        kind: Request or response.
        version: The version.
        flexible: Whether the version is flexible.
    """

    table: ProgramTable
    key: int
    kind: Kind
    version: int
    flexible: bool

    def struct(self, fields: tuple[Field, ...], prefix: str) -> None:
        """Write the instructions of a struct's fields."""
        plain, tagged = split_tagged(fields, self.version)
        for each in plain:
            self._write_field(each, prefix + each.name)
        if self.flexible:
            self._write_tags(tagged, prefix)

    def _write_field(self, each: Field, path: str) -> None:
        code = self.table.code
        number = self._operand(each, path)
        if each.type == "struct":
            at = len(code)
            nullable = self.version in each.null
            if nullable:
                code.append((NULLABLE, 0, 0, number))
            self.struct(each.fields, f"{path}.")
            if nullable:
                code[at] = (NULLABLE, len(code), 0, number)
        elif each.type.startswith("[]"):
            self._write_array(each, path, number)
        else:
            self._write_primitive(each.type, each.classic, number)

    def _operand(self, each: Field, path: str) -> int:
        """Return the last number of a field's instruction."""
        return self.table.field_number(FieldRef(self.key, self.kind, path, each))

    def _write_array(self, each: Field, path: str, number: int) -> None:
        code, at = self.table.code, len(self.table.code)
        op = ARRAY_COMPACT if self.flexible else ARRAY32
        least = self.min_bytes(each.fields if each.type == "[]struct" else each.type[2:])
        code.append((op, 0, least, number))
        if each.type == "[]struct":
            self.struct(each.fields, f"{path}.")
        else:
            self._write_primitive(each.type[2:], False, self._operand(each, f"{path}.[]"))
        code.append((NEXT, 0, 0, 0))
        code[at] = (op, len(code), least, number)

    def min_bytes(self, item: tuple[Field, ...] | str) -> int:
        """Return the size of the smallest item of an array; `item` is its fields or its type."""
        if not isinstance(item, str):
            plain, _ = split_tagged(item, self.version)
            return sum(map(self._min_field_bytes, plain)) + self.flexible
        if item == "string":
            return 1 if self.flexible else 2
        if item in ("bytes", "records"):
            return 1 if self.flexible else 4
        return _SIZES[item]

    def _min_field_bytes(self, each: Field) -> int:
        if each.type == "struct":
            return 1 if self.version in each.null else self.min_bytes(each.fields)
        if each.type.startswith("[]"):
            return 1 if self.flexible else 4
        return self.min_bytes(each.type)

    def _write_primitive(self, word: str, classic: bool, number: int) -> None:
        flexible = self.flexible and not classic
        match word:
            case "string":
                step = BYTES_COMPACT if flexible else BYTES16, 0, 0, number
            case "bytes" | "records":
                step = BYTES_COMPACT if flexible else BYTES32, 0, 0, number
            case "uuid" | "float64":
                step = FIXED, _SIZES[word], 0, number
            case _:
                step = NUMBER, _SIZES[word], not word.startswith(("u", "b")), number
        self.table.code.append(step)

    def _write_tags(self, tagged: list[Field], prefix: str) -> None:
        code = self.table.code
        at = len(code)
        code.append((TAGS, 0, 0, 0))
        rows = []
        for each in tagged:
            rows.append((each.tag or 0, len(code)))
            self._write_field(each, prefix + each.name)
            code.append((TAG_END, at, 0, 0))
        first = len(self.table.tags)
        self.table.tags += rows
        code[at] = (TAGS, first, len(rows), len(code))


_SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}
_SIZES |= {"uuid": 16, "float64": 8}


@per_schemas
def programs() -> ProgramTable:
    """Return the table that all passes with the same definitions share."""
    return ProgramTable()
