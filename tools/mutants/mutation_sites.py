"""The places of a module where a small fault can be made, and the fault."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

KERNELS = {"Kernel", "device_function"}
"""Decorators of functions that run compiled: a fault in their Python text changes nothing."""

OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}

_TRIVIAL = (ast.Pass, ast.Raise, ast.Expr)


class Site(NamedTuple):
    """
    A place for a fault.

    Attributes:
        line: Its line.
        kind: The kind of fault.
        make: Changes the tree.
    """

    line: int
    kind: str
    make: Callable[[], None]


def sites_of(tree: ast.Module) -> list[Site]:
    """Return all places of a module, in the order of its text; they change this tree."""
    finder = _Finder()
    finder.visit(tree)
    return finder.sites


def faulty(source: str, number: int) -> tuple[ast.Module, Site]:
    """Return the tree of a module with one fault, and its place."""
    tree = ast.parse(source)
    site = sites_of(tree)[number]
    site.make()
    return ast.fix_missing_locations(tree), site


class _Finder(ast.NodeVisitor):
    """Collects places in the bodies of functions; annotations and assertions are left out."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        names = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
        if names & KERNELS:
            return
        self.depth += 1
        code = node.body[ast.get_docstring(node) is not None :]
        if len(code) > 1 or not all(isinstance(each, _TRIVIAL) for each in code):
            self.add(node, "returns at once", lambda: node.body.insert(0, ast.Return(None)))
        for statement in code:
            self.visit(statement)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: it finds errors, and changes no result
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def generic_visit(self, node: ast.AST) -> None:
        """Add the places of one node, then those inside."""
        if self.depth:
            for kind, make in _faults(node):
                self.add(node, kind, make)
            for name, value in ast.iter_fields(node):
                if isinstance(value, list):
                    self._droppable(value)
                elif name in ("test", "exc") and isinstance(node, ast.If | ast.IfExp | ast.While):
                    self.add(value, "negated", _negation(node))
        super().generic_visit(node)

    def _droppable(self, block: list[ast.AST]) -> None:
        for at, each in enumerate(block):
            is_call = isinstance(each, ast.Expr) and not isinstance(each.value, ast.Constant)
            if is_call or isinstance(each, ast.AugAssign | ast.Continue | ast.Break):
                self.add(each, "dropped", _dropped(block, at))

    def add(self, node: ast.AST, kind: str, make: Callable[[], None]) -> None:
        self.sites.append(Site(getattr(node, "lineno", 0), kind, make))


def _faults(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the faults of one expression."""
    match node:
        case ast.Compare(ops=[op]):
            yield "compared otherwise", lambda: setattr(node, "ops", [OTHER_COMPARISON[type(op)]()])
        case ast.Constant(value=bool(value)):
            yield "other value", lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield "one more", lambda: setattr(node, "value", value + 1)
        case ast.BoolOp(op=ast.And()):
            yield "or for and", lambda: setattr(node, "op", ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "and for or", lambda: setattr(node, "op", ast.And())
        case ast.BinOp(op=ast.Add()):
            yield "- for +", lambda: setattr(node, "op", ast.Sub())
        case ast.BinOp(op=ast.Sub()):
            yield "+ for -", lambda: setattr(node, "op", ast.Add())
        case ast.Call(func=ast.Name("min" | "max")):
            pass  # of the same numbers in any order
        case ast.Call(args=[first, second, *others]) if ast.dump(first) != ast.dump(second):
            yield "arguments swapped", lambda: setattr(node, "args", [second, first, *others])


def _negation(node: ast.If | ast.IfExp | ast.While) -> Callable[[], None]:
    return lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))


def _dropped(block: list[ast.AST], at: int) -> Callable[[], None]:
    return lambda: block.__setitem__(at, ast.Pass())
