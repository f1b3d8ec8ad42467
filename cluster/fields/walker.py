"""
Generates functions that walk the fields of a body, each for one version and its wanted roles.

A body is walked several times per request, so the generated code needs no lookups in the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from cluster.fields.field_layout import FieldValue, Scope, StructField, StructLayout, ValueField
from dissector.protocol.field_roles import Role

Walk = Callable[[Mapping[str, Any], Scope], Iterator[FieldValue]]
Mapped = Callable[[Any, Scope], tuple[Any, str]]
"""Returns the value in place of one, and the rule that chose it."""

Report = Callable[[str, str, Any, Any, str], None]
"""Takes path and role of a value, the value, the one in its place, and the rule."""

Map = Callable[
    [Mapping[str, Any], Scope, Mapping[str, Mapped], Callable[[FieldValue], None], Report], None
]
"""Replaces values of a body: body, scope, role -> mapping, what maps all other roles, report."""

_Leaf = Callable[["FunctionSource", int, ValueField, tuple[str, str], str, "ScopeVariable"], None]
"""Emits what is done with the value of a field, or with each value of an array of scalars."""
Values = Callable[[Mapping[str, Any]], Iterator[Any]]


class FunctionSource:
    """The source lines of a function, and the objects that they refer to."""

    def __init__(self, head: str) -> None:
        self._lines = [head]
        self.names: dict[str, Any] = {"absent": ..., "new": object.__new__}

    def add_line(self, depth: int, text: str) -> None:
        """Add a line."""
        self._lines.append("    " * depth + text)

    def name_of(self, value: object) -> str:
        """Bind an object to a new name in the source, and return the name."""
        name = f"o{len(self.names)}"
        self.names[name] = value
        return name

    def build(self) -> Callable[..., Any]:
        """Compile the function `f`."""
        exec(compile("\n".join(self._lines), "<walk>", "exec"), self.names)
        function: Callable[..., Any] = self.names["f"]
        return function


class ScopeVariable:
    """
    The variable that holds the scope of a struct; a scope is created only if a field needs it.

    Args:
        variable: The variable of the nearest scope created.
        pending: Layouts and variables of the structs inside that it does not include yet.
    """

    def __init__(self, variable: str, pending: tuple[tuple[StructLayout, str], ...] = ()) -> None:
        self.variable = variable
        self._pending = pending

    def inside(self, layout: StructLayout, body: str) -> ScopeVariable:
        """Return the scope variable of a struct inside."""
        return (
            ScopeVariable(self.variable, (*self._pending, (layout, body))) if layout.scope else self
        )

    def materialise(self, code: FunctionSource, depth: int, variable: str) -> ScopeVariable:
        """Emit the code that creates the scope, unless it exists."""
        if not self._pending:
            return self
        code.add_line(depth, f"{variable} = new(Scope)")
        code.add_line(depth, f"d = {variable}.__dict__")
        code.add_line(depth, f"d.update({self.variable}.__dict__)")
        for layout, body in self._pending:
            for name, field in layout.scope:
                code.add_line(depth, f"if {field!r} in {body}: d[{name!r}] = {body}[{field!r}]")
        return ScopeVariable(variable)


def compile_walk(layout: StructLayout, field_value: type[FieldValue], scope: type[Scope]) -> Walk:
    """Return a function that yields the fields of a body with this layout."""
    code = FunctionSource("def f(b, s):")
    code.names.update(FieldValue=field_value, Scope=scope)
    code.add_line(1, "yield from ()")
    _walk(code, layout, _yield_value)
    return code.build()


class RolesToMap(NamedTuple):
    """
    How the values of roles are mapped.

    Attributes:
        mapped: The values of the roles that have a mapping.
        without_negatives: Of these the ones whose negative values stay as they are.
        reported: The rules that are reported even if the value stays the same.
    """

    mapped: frozenset[str]
    without_negatives: frozenset[Role]
    reported: frozenset[str]


def compile_map(
    layout: StructLayout, field_value: type[FieldValue], scope: type[Scope], roles: RolesToMap
) -> Map:
    """Return a function that replaces the values in bodies of a layout, except None."""
    code = FunctionSource("def f(b, s, mappings, other, report):")
    code.add_line(1, "pass")
    code.names.update(FieldValue=field_value, Scope=scope)
    code.names.update(reported=roles.reported)
    mappings = {role: code.name_of(role) for role in _roles_in(layout) if role in roles.mapped}
    for role, name in mappings.items():
        code.add_line(1, f"m_{name} = mappings[{role.value!r}]")

    def replace(code: FunctionSource, depth: int, leaf: ValueField, path: str, *at: str) -> None:
        body, key, value, scope_variable = at
        mapping = mappings.get(leaf.role)
        if mapping is None:
            given = f"{code.name_of(leaf.role)}, {code.name_of(leaf.field)}, {value}, {body}, {key}"
            code.add_line(depth, f"other(FieldValue(f{path!r}, {given}, {scope_variable}))")
            return
        if leaf.role in roles.without_negatives:
            code.add_line(depth, f"if {value} >= 0:")
            depth += 1
        code.add_line(depth, f"n, r = m_{mapping}({value}, {scope_variable})")
        given = f"f{path!r}, {mapping}, {value}, n, r"
        code.add_line(depth, f"if n != {value}:")
        code.add_line(depth + 1, f"{body}[{key}] = n")
        code.add_line(depth + 1, f"report({given})")
        code.add_line(depth, f"elif r in reported: report({given})")

    def leaf_of(
        code: FunctionSource,
        depth: int,
        leaf: ValueField,
        at: tuple[str, str],
        path: str,
        scopes: ScopeVariable,
    ) -> None:
        body, value = at
        code.add_line(depth, f"if {value} is not absent and {value} is not None:")
        if not leaf.is_list:
            replace(code, depth + 1, leaf, path, body, repr(leaf.name), value, scopes.variable)
            return
        code.add_line(depth + 1, f"for i, v in enumerate({value}):")
        code.add_line(depth + 2, "if v is None: continue")
        replace(code, depth + 2, leaf, path + "[{i}]", value, "i", "v", scopes.variable)

    _walk(code, layout, leaf_of)
    return code.build()


def _roles_in(layout: StructLayout) -> set[Role]:
    roles: set[Role] = set()
    for member in layout.members:
        roles |= _roles_in(member.layout) if isinstance(member, StructField) else {member.role}
    return roles


def compile_values(layout: StructLayout) -> Values:
    """Return a function that yields the values in bodies of a layout, except empty ones and 0."""
    code = FunctionSource("def f(b):")
    code.add_line(1, "yield from ()")
    _values(code, 1, layout, "b")
    return code.build()


def _values(code: FunctionSource, depth: int, layout: StructLayout, body: str) -> None:
    for member in layout.members:
        value = f"v{depth}"
        code.add_line(depth, f"{value} = {body}.get({member.name!r})")
        code.add_line(depth, f"if {value}:")
        if not hasattr(member, "layout"):
            code.add_line(
                depth + 1,
                f"yield {value}" if not member.is_list else f"yield from filter(None, {value})",
            )
        elif member.is_list:
            code.add_line(depth + 1, f"for b{depth} in {value}:")
            _values(code, depth + 2, member.layout, f"b{depth}")
        else:
            _values(code, depth + 1, member.layout, value)


def _walk(code: FunctionSource, layout: StructLayout, leaf: _Leaf) -> None:
    """Emit the walk over a body `b` in a scope `s`."""
    _struct(code, 1, layout, ("b", ""), ScopeVariable("s").inside(layout, "b"), leaf)


def _struct(
    code: FunctionSource,
    depth: int,
    layout: StructLayout,
    at: tuple[str, str],
    scopes: ScopeVariable,
    leaf: _Leaf,
) -> None:
    """Emit the walk over a struct, of a variable and its path, the content of a format string."""
    body, path = at
    if any(not hasattr(member, "layout") for member in layout.members):
        scopes = scopes.materialise(code, depth, f"s{depth}")
    for member in layout.members:
        below = f"{path}.{member.name}" if path else member.name
        value = f"v{depth}"
        code.add_line(depth, f"{value} = {body}.get({member.name!r}, absent)")
        if hasattr(member, "layout"):
            _branch(code, depth, cast("StructField", member), (value, below), scopes, leaf)
        else:
            leaf(code, depth, member, (body, value), below, scopes)


def _branch(
    code: FunctionSource,
    depth: int,
    branch: StructField,
    at: tuple[str, str],
    scopes: ScopeVariable,
    leaf: _Leaf,
) -> None:
    value, path = at
    code.add_line(depth, f"if {value} is not absent and {value} is not None:")
    inside = value
    if branch.is_list:
        depth += 1
        inside = f"b{depth}"
        code.add_line(depth, f"for i{depth}, {inside} in enumerate({value}):")
        path = f"{path}[{{i{depth}}}]"
    below = inside, path
    _struct(code, depth + 1, branch.layout, below, scopes.inside(branch.layout, inside), leaf)
    code.add_line(depth + 1, "pass")


def _yield_value(
    code: FunctionSource,
    depth: int,
    leaf: ValueField,
    at: tuple[str, str],
    path: str,
    scopes: ScopeVariable,
) -> None:
    body, value = at
    given = f"{code.name_of(leaf.role)}, {code.name_of(leaf.field)}"
    whole = f"FieldValue(f{path!r}, {given}, {value}, {body}, {leaf.name!r}, {scopes.variable})"
    if not leaf.is_list:
        code.add_line(depth, f"if {value} is not absent: yield {whole}")
        return
    code.add_line(depth, f"if {value} is None: yield {whole}")
    code.add_line(depth, f"elif {value} is not absent:")
    code.add_line(depth + 1, f"for i, v in enumerate({value}):")
    element = f"FieldValue(f{path + '[{i}]'!r}, {given}, v, {value}, i, {scopes.variable})"
    code.add_line(depth + 2, f"yield {element}")
