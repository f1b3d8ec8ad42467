"""Hides record payloads in differences: keys, values, header values and whole batches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dissector.view.text.value_text import json_text

_BATCHES = frozenset({"records", "unaligned_records"})
_OF_RECORD = re.compile(r"(?:unaligned_)?records\[[^\]]*\]\.(\w+)")
_PLAIN = frozenset(
    {
        "attributes",
        "control",
        "leader_epoch",
        "offset",
        "producer_epoch",
        "producer_id",
        "sequence",
        "timestamp",
        "timestamp_ms",
        "timestamp_type",
        "transactional",
    }
)
"""Fields of a record or its batch without information about payloads; all others are hidden."""


def hidden(path: str, captured: Any, replayed: Any) -> tuple[Any, Any]:
    """
    Return both sides of a difference with each payload replaced by its length.

    Args:
        path: The path of the difference.
        captured: The captured value, in JSON types.
        replayed: The live value.
    """
    # Captured names may look like parts of a path: every record field found must be harmless.
    if _PLAIN.issuperset(_OF_RECORD.findall(path)):
        return _without(captured), _without(replayed)
    sides = _sized(captured), _sized(replayed)
    if sides[0] != sides[1]:
        return sides
    size = sides[1] if isinstance(sides[1], str) else json_text(sides[1])
    return sides[0], f"{size}, with other bytes"


def _without(value: Any, is_record: bool = False) -> Any:
    """Return a JSON value with each batch and record payload replaced by its length."""
    match value:
        case Mapping():
            return {
                name: _member(name, each, is_record or _is_record(value))
                for name, each in value.items()
            }
        case list():
            return [_without(each, is_record) for each in value]
        case _:
            return value


def _member(name: str, value: Any, is_record: bool) -> Any:
    if name in _BATCHES:
        return _sized_batches(value)
    return _sized(value) if is_record and name not in _PLAIN else _without(value)


def _is_record(value: Mapping[str, Any]) -> bool:
    return {"key", "value", "headers"} <= value.keys()


def _sized_batches(value: Any) -> Any:
    """Return the length of batches given as hex."""
    return _size(len(value) // 2) if isinstance(value, str) else _sized(value)


def _sized(value: Any) -> Any:
    """Return a payload with each value replaced by its length, except null and booleans."""
    match value:
        case None | bool():
            return value
        case str():
            return _size(len(value.encode("utf-8", "surrogatepass")))
        case {"hex": str() as digits, **more} if not more:
            return _size(len(digits) // 2)
        case [str() as name, content]:
            return [name, _sized(content)]
        case list():
            return [_sized(each) for each in value]
        case Mapping():
            return {name: _sized(each) for name, each in value.items()}
        case _:
            return "hidden"


def _size(count: int) -> str:
    return f"{count:,} byte{'s' * (count != 1)}, hidden"
