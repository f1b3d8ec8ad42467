"""
A declaration as a program that puts facts on the tape; see `dissector.protocol.facts`.

The instructions of `program`, with the role of the field instead of the field number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dissector.protocol.api import Kind
from dissector.protocol.context import per_schemas
from dissector.protocol.facts import ERROR, NO_FACT, PAIR_ID, fact_role
from dissector.protocol.program import ProgramTable, ProgramWriter
from dissector.protocol.records_fields import may_be_cut
from dissector.protocol.schema import Field, split_tagged

CLIENT_ID, RECORDS, RECORDS_CUT = range(PAIR_ID + 1, PAIR_ID + 4)
"""Further roles: the client id; records; records that may end with an incomplete batch."""
ROLES = RECORDS_CUT + 1


class FactProgramTable(ProgramTable):
    """Programs with roles instead of field numbers."""

    def _writer(self, key: int, kind: Kind, version: int, flexible: bool) -> ProgramWriter:
        return _FactWriter(self, key, kind, version, flexible)


@dataclass(slots=True, eq=False, repr=False)
class _FactWriter(ProgramWriter):
    _siblings: Sequence[Field] = ()

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

    def _write_array(self, each: Field, path: str, number: int) -> None:
        # The items of an array have roles, not the array.
        ProgramWriter._write_array(self, each, path, NO_FACT)


@per_schemas
def fact_programs() -> FactProgramTable:
    """Return the table that all passes with the same definitions share."""
    return FactProgramTable()
