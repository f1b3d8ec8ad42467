"""Reading and making pieces of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

INT64_MIN = -(2**63)


def assigned_values(tree: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield assigned names with their values, in the order of lines."""
    found = (each for each in ast.walk(tree) if isinstance(each, ast.Assign | ast.AnnAssign))
    for each in sorted(found, key=lambda each: each.lineno):
        if each.value is None:
            continue
        for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
            pairs = [(target, each.value)]
            if isinstance(target, ast.Tuple) and isinstance(each.value, ast.Tuple):
                pairs = list(zip(target.elts, each.value.elts, strict=True))
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def stored_names(tree: ast.FunctionDef) -> set[str]:
    """Return the names that a function assigns."""
    return {
        each.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def literal(value: int | tuple[int, ...]) -> ast.expr:
    """Return numbers as constants of 64 bits."""
    if value == INT64_MIN:
        return ast.Name("KK_MIN", ast.Load())
    if isinstance(value, int):
        number: ast.expr = ast.Name(f"{abs(int(value))}LL", ast.Load())
        return number if value >= 0 else ast.UnaryOp(ast.USub(), number)
    return ast.Tuple([literal(each) for each in value], ast.Load())


def call(name: str, arguments: Iterable[ast.expr]) -> ast.Call:
    """Return the call of a function."""
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
