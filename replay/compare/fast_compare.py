"""
Fast comparison: whether two responses of one version are plainly equal.

Everything else - differences, but also another order, records, or names that need further
mapping - is left to the full comparison in `body_diff`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from cluster.fields.field_layout import Scope, StructField, StructLayout, ValueField
from cluster.fields.roles import layout_of
from cluster.fields.walker import FunctionSource, ScopeVariable
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Schema
from replay.compare.comparison_policy import (
    ASSIGNED_ROLES,
    COMPARED_ROLES,
    LAYOUT_ROLES,
    VOLATILE_OFFSETS,
)
from replay.compare.tolerances import is_assigned
from replay.mapping.id_map import OPAQUE_ROLES as HANDED_BACK
from replay.mapping.id_map import IdMap
from replay.mapping.to_captured import CapturedMapping

Body = Mapping[str, Any]
RecordsTest = Callable[[Body, Body, Scope], bool]
"""Returns whether the records of two partitions are equal, by their scope."""

EqualityTest = Callable[[Body, Body, Scope, Callable[[Role, Any, Scope], Any], RecordsTest], bool]

_SCOPED_ROLES = frozenset(
    {
        Role.LEADER_EPOCH,
        Role.FETCHED_EPOCH,
        Role.OFFSET,
        Role.PRODUCER_ID,
        Role.PRODUCER_EPOCH,
        Role.SEQUENCE,
        Role.MEMBER,
        Role.GENERATION,
        Role.MEMBER_EPOCH,
        Role.RESOURCE,
        Role.COORDINATOR_KEY,
    }
)
"""Roles with values that can be mapped only with their scope."""

_MAPPED = frozenset(role for role in Role if hasattr(CapturedMapping, role)) | HANDED_BACK
_UNPAIRED_KEY_ROLES = frozenset(LAYOUT_ROLES)
"""Roles of keys by which `body_diff` does not match elements directly."""


def are_equal(
    schema: Schema,
    version: int,
    captured: Body,
    live: Body,
    scope: Scope,
    ids: IdMap,
    have_equal_records: RecordsTest = lambda *_: False,
) -> bool:
    """
    Return whether two responses are plainly equal; if False, they may still be equivalent.

    Args:
        schema: The schema of both.
        version: The version of both.
        captured: The captured body.
        live: The body of the target.
        scope: The scope of the captured body.
        ids: The id mapping.
        have_equal_records: Compares records, where both sides have any.
    """
    try:
        return _compiled(schema, version)(captured, live, scope, ids.captured, have_equal_records)
    except KeyError:
        return False


@cache
def _compiled(schema: Schema, version: int) -> EqualityTest:
    code = FunctionSource("def f(a, b, s, to, records):")
    code.names.update(Scope=Scope, is_given=is_assigned)
    _Writer(code).struct(
        1, layout_of(schema, version, COMPARED_ROLES), ("a", "b"), ScopeVariable("s")
    )
    code.add_line(1, "return True")
    return code.build()


class _Writer:
    """Writes the source of the comparison, which returns False at the first difference."""

    def __init__(self, code: FunctionSource) -> None:
        self._code = code

    def _unless(self, depth: int, condition: str) -> None:
        self._code.add_line(depth, f"if not ({condition}): return False")

    def struct(
        self,
        depth: int,
        layout: StructLayout,
        sides: tuple[str, str],
        scopes: ScopeVariable,
        keys: tuple[ValueField, ...] = (),
    ) -> None:
        """Compare two structs, given as variable names; `keys` must be equal even if volatile."""
        captured_name, live_name = sides
        scopes = scopes.inside(layout, captured_name)
        if any(isinstance(m, ValueField) and m.role in _SCOPED_ROLES for m in layout.members):
            scopes = scopes.materialise(self._code, depth, f"s{depth}")
        for member in layout.members:
            x, y = f"x{depth}", f"y{depth}"
            name = repr(member.name)
            self._code.add_line(depth, f"{x} = {captured_name}[{name}]; {y} = {live_name}[{name}]")
            if isinstance(member, StructField):
                self._branch(depth, member, (x, y), scopes)
            elif member.role is Role.RECORDS:
                equal = f"records({captured_name}, {live_name}, {scopes.variable})"
                self._unless(depth, f"not {x} and not {y} or {x} and {y} and {equal}")
            elif member.is_list:
                self._list(depth, member, (x, y), scopes)
            elif member in keys or not (
                member.role in ASSIGNED_ROLES or member.name in VOLATILE_OFFSETS
            ):
                self._unless(depth, f"{x} == {self._mapped(member.role, y, scopes)}")
            else:
                role = self._code.name_of(member.role)
                same = f"is_given({role}, {x}) == is_given({role}, {y})"
                self._unless(depth, f"{x} == {y} or {same}")

    def _list(
        self, depth: int, leaf: ValueField, sides: tuple[str, str], scopes: ScopeVariable
    ) -> None:
        if leaf.role in LAYOUT_ROLES:
            return
        x, y = sides
        self._code.add_line(depth, f"if {x} or {y}:")
        self._unless(depth + 1, f"{x} and {y}")
        mapped = self._mapped(leaf.role, "v", scopes)
        self._unless(depth + 1, f"list({x}) == [{mapped} for v in {y}]")
        self._both_null(depth, "elif", sides)

    def _both_null(self, depth: int, word: str, sides: tuple[str, str]) -> None:
        x, y = sides
        self._code.add_line(depth, f"{word} ({x} is None) != ({y} is None): return False")

    def _mapped(self, role: Role, value: str, scopes: ScopeVariable) -> str:
        if role not in _MAPPED:
            return value
        return f"to({self._code.name_of(role)}, {value}, {scopes.variable})"

    def _branch(
        self, depth: int, branch: StructField, sides: tuple[str, str], scopes: ScopeVariable
    ) -> None:
        x, y = sides
        if not branch.is_list:
            self._both_null(depth, "if", sides)
            self._code.add_line(depth, f"if {x} is not None:")
            self.struct(depth + 1, branch.layout, sides, scopes)
            self._code.add_line(depth + 1, "pass")
            return
        keys = branch.layout.keys
        if any(key.role in _UNPAIRED_KEY_ROLES or key not in branch.layout.members for key in keys):
            self._unless(depth, f"not {x} and not {y}")
            self._both_null(depth, "if", sides)
            return
        self._code.add_line(depth, f"if {x} or {y}:")
        self._unless(depth + 1, f"{x} and {y} and len({x}) == len({y})")
        elements = f"a{depth + 2}", f"b{depth + 2}"
        self._code.add_line(depth + 1, f"for {', '.join(elements)} in zip({x}, {y}):")
        self.struct(depth + 2, branch.layout, elements, scopes, keys)
        self._code.add_line(depth + 2, "pass")
        self._both_null(depth, "elif", sides)
