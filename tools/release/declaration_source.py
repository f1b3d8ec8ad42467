"""Source text of declarations: a rewritten message, with the original text of unchanged parts."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dissector.protocol.schema import Field, Schema, Versions
from tools.release.declaration_merge import Fields, Merged

NOTATION = {
    *("Array", "Struct", "Bool", "String", "Bytes", "Records", "Uuid", "Float64", "message"),
    *("Int8", "Int16", "Int32", "Int64", "Uint16", "Uint32"),
}
"""Names of `dissector.protocol.schema` used by declarations."""

_SCHEMA = "dissector.protocol.schema"


def replaced(text: str, name: str, ours: Fields, head: Schema, fields: tuple[Merged, ...]) -> str:
    """Return the text of a file with one declaration replaced."""
    for each in ast.parse(text).body:
        if isinstance(each, ast.Assign) and [ast.unparse(to) for to in each.targets] == [name]:
            nodes = dict(_nodes(each.value, ours))
            written = f"{name} = {_message(head, _children(text, nodes, fields))}"
            lines = text.splitlines(keepends=True)
            return "".join([*lines[: each.lineno - 1], written, "\n", *lines[each.end_lineno :]])
    raise LookupError(f"{name} is declared nowhere")


def declaration(name: str, head: Schema, fields: tuple[Merged, ...]) -> str:
    """Return a new declaration."""
    return f"{name} = {_message(head, _children('', {}, fields))}\n"


def save(file: Path, text: str) -> None:
    """Write a file of declarations with the required imports, formatted by ruff."""
    tree = ast.parse(text)
    used = NOTATION & {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    imports = next(
        each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == _SCHEMA
    )
    names = used | {each.name for each in imports.names} - NOTATION
    lines = text.splitlines(keepends=True)
    lines[imports.lineno - 1 : imports.end_lineno] = [import_of(names)]
    file.write_text("".join(lines), encoding="utf-8")
    for command in (["check", "--fix-only", "--select", "I"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "--quiet", str(file)], check=True)


def import_of(names: set[str]) -> str:
    """Return the import line of the notation."""
    return f"from {_SCHEMA} import {', '.join(sorted(names))}\n"


def _nodes(node: ast.expr, fields: Fields) -> Iterator[tuple[int, ast.expr]]:
    """Yield the identities of inline fields, with their places in the source."""
    if not isinstance(node, ast.Subscript):
        return
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(inside) != len(fields) or not all(
        isinstance(each, ast.Call | ast.Subscript) for each in inside
    ):
        return  # they are named, and may be shared
    for each, field in zip(inside, fields, strict=True):
        yield id(field), each
        yield from _nodes(each, field.fields)


def _children(text: str, nodes: dict[int, ast.expr], fields: tuple[Merged, ...]) -> str:
    inside = "".join(f"{_field(text, nodes, each)},\n" for each in fields)
    return f"[\n{inside}]" if inside else ""


def _field(text: str, nodes: dict[int, ast.expr], each: Merged) -> str:
    node = nodes.get(id(each.ours))
    if node is None:
        return _comments(text, node) + _call(each.field) + _children(text, nodes, each.children)
    before = _comments(text, node)
    if each.is_ours:
        return before + _segment(text, node)
    call = node.value if isinstance(node, ast.Subscript) else node
    head = _segment(text, call) if each.keeps_marks else _call(each.field)
    return before + head + _children(text, nodes, each.children)


def _segment(text: str, node: ast.expr) -> str:
    found = ast.get_source_segment(text, node)
    assert found is not None
    return found


def _comments(text: str, node: ast.expr | None) -> str:
    """Return the comment lines above a field."""
    if node is None:
        return ""
    lines = text.splitlines()
    first = node.lineno - 1
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return "".join(f"{line}\n" for line in lines[first : node.lineno - 1])


def _message(head: Schema, children: str) -> str:
    flexible = f', flexible="{_range(head.flexible)}"' if _exists(head.flexible) else ""
    return f'message({head.key}, "{head.versions_text}"{flexible}){children}'


def _call(field: Field) -> str:
    word = field.type
    marks = [repr(field.name)]
    if field.versions != Versions.of("0+"):
        marks.append(repr(_range(field.versions)))
    if word.startswith("[]") and word != "[]struct":
        marks.append(f"of={word[2:].title()}")
    if _exists(field.null):
        marks.append(f'null="{_range(field.null)}"')
    if field.tag is not None:
        marks.append(f"tag={field.tag}")
    if field.default is not ...:
        marks.append(f"default={field.default!r}")
    marks += [f"{mark}=True" for mark in ("ignorable", "key") if getattr(field, mark)]
    marks += [f"entity={field.entity!r}"] if field.entity else []
    marks += ["classic=True"] if field.classic else []
    marks += [f"kafka={field.kafka!r}"] if field.kafka else []
    return f"{'Array' if word.startswith('[]') else word.title()}({', '.join(marks)})"


def _exists(versions: Versions) -> bool:
    return versions.low <= versions.high


def _range(versions: Versions) -> str:
    if versions.high == 32767:
        return f"{versions.low}+"
    return str(versions.low) if versions.low == versions.high else f"{versions.low}-{versions.high}"
