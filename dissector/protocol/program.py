"""
A declaration as a *program*: instructions that an interpreter runs over the bytes of a message.

This is the third form derived from a declaration, beside its codec and its spans. A program
consists of rows of numbers, so that the interpreter (`dissector.engine.tape.tape`) is compiled once
for all messages of all APIs.

Source: the same as of `wire`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dissector.kernel.named_rows import NamedRow, RowArray, table_of
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


class Op:
    """Operations, in the order in which the interpreter tells them apart."""

    # An integer; a float or uuid as bytes.
    NUMBER, FIXED = 0, 1
    # A length (int16, int32 or compact), followed by that number of bytes.
    BYTES16, BYTES32, BYTES_COMPACT = 2, 3, 4
    # A count, then that number of items.
    ARRAY32, ARRAY_COMPACT = 5, 6
    # The end of an item, of a tagged field, of the message.
    NEXT, TAG_END, END = 7, 8, 9
    # A struct that may be null.
    NULLABLE = 10
    # A tag section.
    TAGS = 11


@dataclass(slots=True)
class Instruction(NamedRow):
    """
    An instruction of a program.

    Attributes:
        op: Its operation, of `Op`.
        size: Bytes of a number or of fixed bytes; the fewest bytes of an item of an array.
        is_signed: Whether a number is signed.
        behind: The instruction behind an array, a struct that may be null, or the fields of a tag
            section.
        first_tag: Of a tag section: its first row in the table of tags.
        tag_count: Number of its rows there.
        section: Of the end of a tagged field: the instruction of its tag section.
        field: The number of a declared field over all versions of its message; in programs of
            facts its role.
    """

    op: int
    size: int = 0
    is_signed: bool = False
    behind: int = 0
    first_tag: int = 0
    tag_count: int = 0
    section: int = 0
    field: int = 0


@dataclass(slots=True)
class KnownTag(NamedRow):
    """
    A declared tag of a tag section.

    Attributes:
        tag: The tag.
        step: The first instruction of its field.
    """

    tag: int
    step: int


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
        tags: The declared tags of the tag sections.
        field_refs: The field of each field number; number 0 is `UNKNOWN_TAG`.
    """

    code: list[Instruction] = field(default_factory=list)
    tags: list[KnownTag] = field(default_factory=list)
    field_refs: list[FieldRef | None] = field(default_factory=lambda: [None])
    _starts: dict[tuple[int, int, Kind], int] = field(default_factory=dict)
    _numbers: dict[tuple[int, Kind, str, str, bool], int] = field(default_factory=dict)
    _whole: tuple[int, int] = (0, 0)
    _tables: tuple[RowArray, RowArray] = field(
        default_factory=lambda: (table_of([], Instruction), table_of([], KnownTag))
    )

    def start(self, key: int, version: int, kind: Kind) -> int:
        """
        Return a message's first instruction, in its header; -1 for an unknown API or version.

        The program is made at its first use; the table only grows.
        """
        start = self._starts.get((key, version, kind))
        if start is None:
            start = self._starts[key, version, kind] = self._make(key, version, kind)
        return start

    def tables(self) -> tuple[RowArray, RowArray]:
        """Return the instructions and the tags, for kernels; later programs are in later tables."""
        code, tags = self._tables
        all_code, all_tags = self._whole
        if len(code) != all_code:
            # Whole programs do not change: the rows of earlier ones are copied.
            more_code = table_of(self.code[len(code) : all_code], Instruction)
            more_tags = table_of(self.tags[len(tags) : all_tags], KnownTag)
            code, tags = np.concatenate((code, more_code)), np.concatenate((tags, more_tags))
            self._tables = code, tags
        return code, tags

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
        self.code.append(Instruction(Op.END))
        self._whole = len(self.code), len(self.tags)
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
            start = Instruction(Op.NULLABLE, field=number)
            nullable = self.version in each.null
            if nullable:
                code.append(start)
            self.struct(each.fields, f"{path}.")
            start.behind = len(code)
        elif each.type.startswith("[]"):
            self._write_array(each, path, number)
        else:
            self._write_primitive(each.type, each.classic, number)

    def _operand(self, each: Field, path: str) -> int:
        """Return the number of a field in its instruction."""
        return self.table.field_number(FieldRef(self.key, self.kind, path, each))

    def _write_array(self, each: Field, path: str, number: int) -> None:
        code = self.table.code
        op = Op.ARRAY_COMPACT if self.flexible else Op.ARRAY32
        least = self.min_bytes(each.fields if each.type == "[]struct" else each.type[2:])
        start = Instruction(op, least, field=number)
        code.append(start)
        if each.type == "[]struct":
            self.struct(each.fields, f"{path}.")
        else:
            self._write_primitive(each.type[2:], False, self._operand(each, f"{path}.[]"))
        code.append(Instruction(Op.NEXT))
        start.behind = len(code)

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
                step = Instruction(Op.BYTES_COMPACT if flexible else Op.BYTES16, field=number)
            case "bytes" | "records":
                step = Instruction(Op.BYTES_COMPACT if flexible else Op.BYTES32, field=number)
            case "uuid" | "float64":
                step = Instruction(Op.FIXED, _SIZES[word], field=number)
            case _:
                is_signed = not word.startswith(("u", "b"))
                step = Instruction(Op.NUMBER, _SIZES[word], is_signed, field=number)
        self.table.code.append(step)

    def _write_tags(self, tagged: list[Field], prefix: str) -> None:
        code = self.table.code
        at, start = len(code), Instruction(Op.TAGS, tag_count=len(tagged))
        code.append(start)
        rows = []
        for each in tagged:
            rows.append(KnownTag(each.tag or 0, len(code)))
            self._write_field(each, prefix + each.name)
            code.append(Instruction(Op.TAG_END, section=at))
        start.first_tag, start.behind = len(self.table.tags), len(code)
        self.table.tags += rows


_SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}
_SIZES |= {"uuid": 16, "float64": 8}


@per_schemas
def programs() -> ProgramTable:
    """Return the table that all passes with the same definitions share."""
    return ProgramTable()


def field_roles(role: Callable[[FieldRef], int]) -> NDArray[np.uint8]:
    """Return what each field number is to a reader, as `role` tells; 0 has no field."""
    return _roles_of_first(role, len(programs().field_refs))


@per_schemas
def _roles_of_first(role: Callable[[FieldRef], int], count: int) -> NDArray[np.uint8]:
    """Return the roles of the first `count` fields; programs only ever add fields."""
    refs = programs().field_refs[:count]
    return np.array([0 if ref is None else role(ref) for ref in refs], np.uint8)
