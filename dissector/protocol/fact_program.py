"""
A declaration as a program that reads nothing but facts; see `dissector.protocol.facts`.

The steps are those of `program`, condensed: what tells nothing is passed over, as many bytes at a
time as is certain. A step's last number is the role of its field instead of the field. There is no
NUMBER, but FIXED. Where they may, steps pass over their neighbours: of FIXED `a` counts all of it,
`b` what is in front; of texts and bytes `a` counts what follows, `b` what is in front; of items
that need no look `b` counts what follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dissector.protocol.api import Kind
from dissector.protocol.carried import may_be_cut
from dissector.protocol.context import per_schemas
from dissector.protocol.facts import ERROR, NOTHING, PAIR_ID, role
from dissector.protocol.program import (
    ARRAY32,
    BYTES_COMPACT,
    FIXED,
    ITEMS32,
    ITEMS_COMPACT,
    Programs,
    Writer,
)
from dissector.protocol.schema import Field, split

CLIENT_ID, RECORDS, RECORDS_CUT = range(PAIR_ID + 1, PAIR_ID + 4)
"""What else a step tells: who sends it; records; records that may end with a part of a batch."""


class FactPrograms(Programs):
    """Programs, condensed; their steps end with roles instead of field numbers."""

    def _writer(self, key: int, kind: Kind, version: int, flexible: bool) -> Writer:
        return _FactWriter(self, key, kind, version, flexible)


@dataclass(slots=True)
class _FactWriter(Writer):
    _beside: Sequence[Field] = ()
    _target: int = -1
    """A step that is jumped to, so that the one before it must not reach beyond it."""

    def struct(self, fields: tuple[Field, ...], prefix: str) -> None:
        """Write the fields of a struct."""
        plain, tagged = split(fields, self.version)
        outside, self._beside = self._beside, plain + tagged
        Writer.struct(self, fields, prefix)
        self._beside = outside

    def _number(self, each: Field, path: str) -> int:
        if self.key < 0:
            return CLIENT_ID if each.name == "client_id" else NOTHING
        if each.type == "records" and each.name == "records":
            cut = may_be_cut(self.key, self.kind)
            return NOTHING if cut is None else RECORDS_CUT if cut else RECORDS
        what = role(each, self._beside)
        return NOTHING if what == ERROR and self.kind == "request" else what

    def _value(self, each: Field, path: str) -> None:
        Writer._value(self, each, path)
        if each.type == "struct":
            self._target = len(self.programs.code)

    def _array(self, each: Field, path: str, number: int) -> None:
        code, at = self.programs.code, len(self.programs.code)
        Writer._array(self, each, path, number)
        items = code[at + 1 : -1]
        if len(items) == 1 and items[0][0] == FIXED and items[0][3] == NOTHING:
            op = ITEMS32 if code[at][0] == ARRAY32 else ITEMS_COMPACT
            code[at:] = [(op, items[0][1], 0, NOTHING)]

    def _plain(self, word: str, classic: bool, number: int) -> None:
        Writer._plain(self, word, classic, number)
        code = self.programs.code
        op, size, _, _ = code[-1]
        if op <= FIXED:
            code[-1] = FIXED, size, 0, number
        if len(code) - 1 == self._target or len(code) == 1:
            return
        before, a, b, what = code[-2]
        if before == FIXED and what == NOTHING:
            code[-2:] = [(FIXED, a + size, a, number) if op <= FIXED else (op, 0, a, number)]
        elif op <= FIXED and number == NOTHING and before in (ITEMS32, ITEMS_COMPACT):
            code[-2:] = [(before, a, b + size, what)]
        elif op <= FIXED and number == NOTHING and before <= BYTES_COMPACT:
            code[-2:] = [(before, a + size, b, what)]


@per_schemas
def fact_programs() -> FactPrograms:
    """Return the table that all readings with the same definitions share."""
    return FactPrograms()
