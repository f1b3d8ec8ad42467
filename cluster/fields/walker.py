"""
Generates functions that walk the fields of a body, each for one version and its wanted roles.

A body is walked several times per request, so the generated code needs no lookups in the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from cluster.fields.field_layout import FieldValue, Scope, StructField, StructLayout, ValueField

Walk = Callable[[Mapping[str, Any], Scope], Iterator[FieldValue]]
Values = Callable[[Mapping[str, Any]], Iterator[Any]]


class FunctionSource:
    """The source lines of a function, and the objects that they refer to."""

    def __init__(self, head: str) -> None:
        self._lines = [head]
        self.names: dict[str, Any] = {"absent": ...}

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
        code.add_line(depth, f"{variable} = Scope({self.variable})")
        code.add_line(depth, f"d = {variable}.__dict__")
        for layout, body in self._pending:
            for name, field in layout.scope:
                code.add_line(depth, f"if {field!r} in {body}: d[{name!r}] = {body}[{field!r}]")
        return ScopeVariable(variable)


def compile_walk(layout: StructLayout, field_value: type[FieldValue], scope: type[Scope]) -> Walk:
    """Return a function that yields the fields of a body with this layout."""
    code = FunctionSource("def f(b, s):")
    code.names.update(FieldValue=field_value, Scope=scope)
    code.add_line(1, "yield from ()")
    _walk(code, 1, layout, "b", "", ScopeVariable("s").inside(layout, "b"))
    return code.build()


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


def _walk(
    code: FunctionSource,
    depth: int,
    layout: StructLayout,
    body: str,
    path: str,
    scopes: ScopeVariable,
) -> None:
    """Emit the walk over a struct; `path` is the content of a format string."""
    if any(not hasattr(member, "layout") for member in layout.members):
        scopes = scopes.materialise(code, depth, f"s{depth}")
    for member in layout.members:
        below = f"{path}.{member.name}" if path else member.name
        value = f"v{depth}"
        code.add_line(depth, f"{value} = {body}.get({member.name!r}, absent)")
        if hasattr(member, "layout"):
            _branch(code, depth, cast("StructField", member), value, below, scopes)
        else:
            _leaf(code, depth, member, (body, value), below, scopes)


def _branch(
    code: FunctionSource,
    depth: int,
    branch: StructField,
    value: str,
    path: str,
    scopes: ScopeVariable,
) -> None:
    code.add_line(depth, f"if {value} is not absent and {value} is not None:")
    inside = value
    if branch.is_list:
        depth += 1
        inside = f"b{depth}"
        code.add_line(depth, f"for i{depth}, {inside} in enumerate({value}):")
        path = f"{path}[{{i{depth}}}]"
    _walk(code, depth + 1, branch.layout, inside, path, scopes.inside(branch.layout, inside))
    code.add_line(depth + 1, "pass")


def _leaf(
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
