"""
Finds non-canonical values: codecs decode and encode them, but Kafka would not write them.

Examples are null in a field that is not nullable, a boolean of 2, text that is not UTF-8. The check
of a body is generated for its version, so that it examines only fields that can have such values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dissector.protocol.schema import Field, Schema, split_tagged


@cache
def non_canonical_check(schema: Schema, version: int) -> Callable[[Any], bool]:
    """Return a function that checks a body of this version for non-canonical values."""
    lines = ["def is_non_canonical(v0):", *_struct(schema.fields, version, 0), " return False"]
    names: dict[str, Any] = {"is_non_canonical_text": is_non_canonical_text}
    exec(compile("\n".join(lines), "<non-canonical values>", "exec"), names)
    found: Callable[[Any], bool] = names["is_non_canonical"]
    return found


def is_non_canonical_text(text: str) -> bool:
    """Return whether a string was decoded from bytes that are not UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _struct(fields: tuple[Field, ...], version: int, depth: int) -> list[str]:
    """Return statements that check the struct `v<depth>`, indented by `depth` + 1."""
    untagged, tagged = split_tagged(fields, version)
    lines: list[str] = []
    for each in untagged + tagged:
        lines += _field(each, version, depth)
    return lines


def _field(each: Field, version: int, depth: int) -> list[str]:
    pad, value = " " * (depth + 1), f"v{depth + 1}"
    nullable = version in each.null
    read = f"{pad}{value} = v{depth}[{each.name!r}]"
    if each.type == "bool":
        return [read, f"{pad}if {value}.__class__ is not bool: return True"]
    if each.type == "struct":
        inner = _struct(each.fields, version, depth + 1)
        return [read, f"{pad}if {value} is not None:", *inner] if inner else []
    if each.type == "string":
        test = f"{value}.__class__ is str and is_non_canonical_text({value})"
        if not nullable:
            test = f"{value} is None or is_non_canonical_text({value})"
        return [read, f"{pad}if {test}: return True"]
    inner = _items(each, version, depth + 1)
    if inner:
        inner = [f"{pad}for v{depth + 1} in {value} or ():", *inner]
    needs = not nullable and (each.type in ("bytes", "records") or each.type.startswith("[]"))
    if needs:
        inner = [f"{pad}if {value} is None: return True", *inner]
    return [read, *inner] if inner else []


def _items(each: Field, version: int, depth: int) -> list[str]:
    """Return statements that check an item of an array."""
    if each.type == "[]struct":
        return _struct(each.fields, version, depth)
    if each.type == "[]string":
        check = f"v{depth} is None or is_non_canonical_text(v{depth})"
        return [f"{' ' * (depth + 1)}if {check}: return True"]
    return []
