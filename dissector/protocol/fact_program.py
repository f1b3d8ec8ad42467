"""
A declaration as a program that reads only facts; see `dissector.protocol.facts`.

The instructions are those of `program`, condensed: fields that are no facts are skipped, as many
bytes at a time as is certain. An instruction's last number is the role of its field instead of the
field number. FIXED replaces NUMBER. Where possible an instruction skips its neighbours too: for
FIXED, `a` is the number of all bytes and `b` of those before the field; for texts and bytes, `a`
is the number of bytes after the field and `b` before it; for skipped items (ITEMS32,
ITEMS_COMPACT), `b` is the number of bytes after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dissector.protocol.api import Kind
from dissector.protocol.carried import may_be_cut
from dissector.protocol.context import per_schemas
from dissector.protocol.facts import ERROR, NO_FACT, PAIR_ID, fact_role
from dissector.protocol.program import (
    ARRAY32,
    BYTES_COMPACT,
    FIXED,
    ITEMS32,
    ITEMS_COMPACT,
    ProgramTable,
    ProgramWriter,
)
from dissector.protocol.schema import Field, split_tagged

CLIENT_ID, RECORDS, RECORDS_CUT = range(PAIR_ID + 1, PAIR_ID + 4)
"""Further roles: the client id; records; records that may end with an incomplete batch."""


class FactProgramTable(ProgramTable):
    """Condensed programs, whose instructions end with roles instead of field numbers."""

    def _writer(self, key: int, kind: Kind, version: int, flexible: bool) -> ProgramWriter:
        return _FactWriter(self, key, kind, version, flexible)


@dataclass(slots=True)
class _FactWriter(ProgramWriter):
    _siblings: Sequence[Field] = ()
    _jump_target: int = -1
    """An instruction that is jumped to, so that its predecessor must not be merged with it."""

    def struct(self, fields: tuple[Field, ...], prefix: str) -> None:
        """Write the instructions of a struct's fields."""
        plain, tagged = split_tagged(fields, self.version)
        outer, self._siblings = self._siblings, plain + tagged
        ProgramWriter.struct(self, fields, prefix)
        self._siblings = outer

    def _operand(self, each: Field, path: str) -> int:
        if self.key < 0:
            return CLIENT_ID if each.name == "client_id" else NO_FACT
        if each.type == "records" and each.name == "records":
            cut = may_be_cut(self.key, self.kind)
            return NO_FACT if cut is None else RECORDS_CUT if cut else RECORDS
        role = fact_role(each, self._siblings)
        return NO_FACT if role == ERROR and self.kind == "request" else role

    def _write_field(self, each: Field, path: str) -> None:
        ProgramWriter._write_field(self, each, path)
        if each.type == "struct":
            self._jump_target = len(self.table.code)

    def _write_array(self, each: Field, path: str, number: int) -> None:
        code, at = self.table.code, len(self.table.code)
        ProgramWriter._write_array(self, each, path, number)
        items = code[at + 1 : -1]
        if len(items) == 1 and items[0][0] == FIXED and items[0][3] == NO_FACT:
            op = ITEMS32 if code[at][0] == ARRAY32 else ITEMS_COMPACT
            code[at:] = [(op, items[0][1], 0, NO_FACT)]

    def _write_primitive(self, word: str, classic: bool, number: int) -> None:
        ProgramWriter._write_primitive(self, word, classic, number)
        code = self.table.code
        op, size, _, _ = code[-1]
        if op <= FIXED:
            code[-1] = FIXED, size, 0, number
        if len(code) - 1 == self._jump_target or len(code) == 1:
            return
        before, a, b, role = code[-2]
        if before == FIXED and role == NO_FACT:
            code[-2:] = [(FIXED, a + size, a, number) if op <= FIXED else (op, 0, a, number)]
        elif op <= FIXED and number == NO_FACT and before in (ITEMS32, ITEMS_COMPACT):
            code[-2:] = [(before, a, b + size, role)]
        elif op <= FIXED and number == NO_FACT and before <= BYTES_COMPACT:
            code[-2:] = [(before, a + size, b, role)]


@per_schemas
def fact_programs() -> FactProgramTable:
    """Return the table that all passes with the same definitions share."""
    return FactProgramTable()
