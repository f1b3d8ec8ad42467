"""
Functions and slices of values: `len(key)`, `lower(topic)`, `count(errors)`, `key[0:4]`.

Source: Wireshark's manual page of display filters, "Functions" and "The slice operator".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from dissector.filter import kinds
from dissector.filter.operands import Name

FUNCTIONS = {
    "len": "bytes of a text or of bytes",
    "lower": "text in lower case",
    "upper": "text in upper case",
    "count": "number of values that a name has in a row",
}

_SLICE = re.compile(r"(?P<first>-?\d+)?(?::(?P<length>-?\d+)?|-(?P<last>\d+))?")


def with_function(name: Name, function: str) -> Name:
    """
    Return a function of a name.

    Raises:
        ValueError: The name has no text; the reason is the message.
    """
    text = f"{function}({name})"
    if function == "count":
        return replace(name, text=text, kinds=(kinds.number,), is_count=True)
    _check_text(name, f"{function}()")
    values = _values_of(name)

    def length(value: object) -> Iterable[object]:
        return [len(_as_bytes(each)) for each in values(value)]

    def lower(value: object) -> Iterable[object]:
        return [_as_text(each).lower() for each in values(value)]

    def upper(value: object) -> Iterable[object]:
        return [_as_text(each).upper() for each in values(value)]

    step = {"len": length, "lower": lower, "upper": upper}[function]
    kind = kinds.number if function == "len" else kinds.text
    return replace(name, text=text, kinds=(kind,), steps=(*name.steps, step))


def with_slice(name: Name, written: str) -> Name:
    """
    Return a part of the bytes of a name; a text is its UTF-8.

    Args:
        name: The name.
        written: `OFFSET:LENGTH`, `FIRST-LAST` or a single `OFFSET`; a missing offset is 0, a
            missing length reaches to the end, a negative offset counts from the end.

    Raises:
        ValueError: It is not a slice, or the name has no text.
    """
    found = _SLICE.fullmatch(written)
    if found is None or not written:
        raise ValueError(f"[{written}] is not a slice; write [offset:length] or [first-last]")
    _check_text(name, "a slice")
    first = int(found["first"] or 0)
    if found["last"] is not None:
        length: int | None = int(found["last"]) - first + 1
    elif ":" in written:
        length = None if found["length"] is None else int(found["length"])
    else:
        length = 1
    values = _values_of(name)

    def part(value: object) -> Iterable[object]:
        for each in values(value):
            content = _as_bytes(each)
            begin = first if first >= 0 else len(content) + first
            end = len(content) if length is None else begin + length
            if 0 <= begin < len(content):
                piece = content[begin:end]
                yield piece if isinstance(each, bytes) else _as_text(piece)

    sliced = tuple(dict.fromkeys(_sliced_kind(kind) for kind in name.kinds))
    return replace(name, text=f"{name}[{written}]", kinds=sliced, steps=(*name.steps, part))


def _sliced_kind(kind: kinds.Kind) -> kinds.Kind:
    return kinds.binary if kind.value(b"") is not None else kinds.text


def _check_text(name: Name, what: str) -> None:
    if not any(kind.searchable for kind in name.kinds):
        raise ValueError(f"{what} takes text or bytes; {name} is {name.kinds[0].title}")


def _values_of(name: Name) -> Callable[[object], list[str | bytes]]:
    """Return a function of a value: its text or bytes; empty for null or another kind."""
    searchable = [kind for kind in name.kinds if kind.searchable]

    def values(raw: object) -> list[str | bytes]:
        if isinstance(raw, bytes):
            return [raw]
        found = ((kind, kind.value(raw)) for kind in searchable)
        return next(([kind.text(value)] for kind, value in found if value is not None), [])

    return values


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


def _as_text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
