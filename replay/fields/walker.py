"""
Functions that go through the fields of a body, written for one version and the roles wanted of it.

A body is walked several times a request, so the way through it is not found anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from replay.fields.field_layout import Branch, Leaf, Node, Place, Scope

Walk = Callable[[Mapping[str, Any], Scope], Iterator[Place]]
Values = Callable[[Mapping[str, Any]], Iterator[Any]]


class Code:
    """Lines of a function, and the objects that they name."""

    def __init__(self, head: str) -> None:
        self._lines = [head]
        self.names: dict[str, Any] = {"absent": ...}

    def line(self, depth: int, text: str) -> None:
        """Add a line."""
        self._lines.append("    " * depth + text)

    def name(self, value: object) -> str:
        """Return a name for an object."""
        name = f"o{len(self.names)}"
        self.names[name] = value
        return name

    def function(self) -> Callable[..., Any]:
        """Compile the function `f`."""
        exec(compile("\n".join(self._lines), "<walk>", "exec"), self.names)
        made: Callable[..., Any] = self.names["f"]
        return made


class Scopes:
    """
    Which variable holds the scope of a struct; it is made only where something is in it.

    Args:
        variable: Of the nearest scope that there is.
        pending: Structs inside, by their nodes and variables, that it does not know yet.
    """

    def __init__(self, variable: str, pending: tuple[tuple[Node, str], ...] = ()) -> None:
        self.variable = variable
        self._pending = pending

    def inside(self, node: Node, body: str) -> Scopes:
        """Return the scopes of a struct inside."""
        return Scopes(self.variable, (*self._pending, (node, body))) if node.scope else self

    def made(self, code: Code, depth: int, variable: str) -> Scopes:
        """Write what makes the scope."""
        if not self._pending:
            return self
        code.line(depth, f"{variable} = Scope({self.variable})")
        code.line(depth, f"d = {variable}.__dict__")
        for node, body in self._pending:
            for name, field in node.scope:
                code.line(depth, f"if {field!r} in {body}: d[{name!r}] = {body}[{field!r}]")
        return Scopes(variable)


def compiled(node: Node, place: type[Place], scope: type[Scope]) -> Walk:
    """Return what yields the places of a body with these fields."""
    code = Code("def f(b, s):")
    code.names.update(Place=place, Scope=scope)
    code.line(1, "yield from ()")
    _walk(code, 1, node, "b", "", Scopes("s").inside(node, "b"))
    return code.function()


def compiled_values(node: Node) -> Values:
    """Return what yields the values in a body with these fields that are not empty, nor 0."""
    code = Code("def f(b):")
    code.line(1, "yield from ()")
    _values(code, 1, node, "b")
    return code.function()


def _values(code: Code, depth: int, node: Node, body: str) -> None:
    for member in node.members:
        value = f"v{depth}"
        code.line(depth, f"{value} = {body}.get({member.name!r})")
        code.line(depth, f"if {value}:")
        if not hasattr(member, "node"):
            code.line(
                depth + 1,
                f"yield {value}" if not member.is_list else f"yield from filter(None, {value})",
            )
        elif member.is_list:
            code.line(depth + 1, f"for b{depth} in {value}:")
            _values(code, depth + 2, member.node, f"b{depth}")
        else:
            _values(code, depth + 1, member.node, value)


def _walk(code: Code, depth: int, node: Node, body: str, path: str, scopes: Scopes) -> None:
    """Write the walk over a struct; `path` is the inside of a format string."""
    if any(not hasattr(member, "node") for member in node.members):
        scopes = scopes.made(code, depth, f"s{depth}")
    for member in node.members:
        below = f"{path}.{member.name}" if path else member.name
        value = f"v{depth}"
        code.line(depth, f"{value} = {body}.get({member.name!r}, absent)")
        if hasattr(member, "node"):
            _branch(code, depth, cast("Branch", member), value, below, scopes)
        else:
            _leaf(code, depth, member, (body, value), below, scopes)


def _branch(code: Code, depth: int, branch: Branch, value: str, path: str, scopes: Scopes) -> None:
    code.line(depth, f"if {value} is not absent and {value} is not None:")
    inside = value
    if branch.is_list:
        depth += 1
        inside = f"b{depth}"
        code.line(depth, f"for i{depth}, {inside} in enumerate({value}):")
        path = f"{path}[{{i{depth}}}]"
    _walk(code, depth + 1, branch.node, inside, path, scopes.inside(branch.node, inside))
    code.line(depth + 1, "pass")


def _leaf(
    code: Code, depth: int, leaf: Leaf, at: tuple[str, str], path: str, scopes: Scopes
) -> None:
    body, value = at
    given = f"{code.name(leaf.role)}, {code.name(leaf.field)}"
    whole = f"Place(f{path!r}, {given}, {value}, {body}, {leaf.name!r}, {scopes.variable})"
    if not leaf.is_list:
        code.line(depth, f"if {value} is not absent: yield {whole}")
        return
    code.line(depth, f"if {value} is None: yield {whole}")
    code.line(depth, f"elif {value} is not absent:")
    code.line(depth + 1, f"for i, v in enumerate({value}):")
    element = f"Place(f{path + '[{i}]'!r}, {given}, v, {value}, i, {scopes.variable})"
    code.line(depth + 2, f"yield {element}")
