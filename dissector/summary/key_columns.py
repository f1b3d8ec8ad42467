"""The keys by which exchanges can be grouped, and their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping

KEYS: Mapping[str, tuple[str, ...]] = {
    "hour": ("hour",),
    "minute": ("minute",),
    "second": ("second",),
    "client": ("client_id", "client"),
    "api": ("api",),
    "version": ("api_version",),
    "topic": ("topic",),
    "broker": ("broker",),
    "group": ("group",),
    "partition": ("partition",),
    "origin": ("origin",),
    "error": ("error",),
    "key_schema": ("key_schema",),
    "value_schema": ("value_schema",),
    "software": ("software_name", "software_version"),
    "principal": ("principal",),
    "listener": ("listener",),
    "security_protocol": ("security_protocol",),
}
"""Each key, and the columns that it fills."""

HOOKED = "hook."
"""Begins the names of columns of hooks, which are keys too."""

LISTS: Mapping[str, str] = {
    "topic": "topics",
    "error": "errors",
    "group": "group",
    "partition": "partition",
    "key_schema": "key_schema",
    "value_schema": "value_schema",
}
"""Keys with several values per row, and their columns; those of hooks have them too."""

TIME_COLUMN = "time"
"""The column of intervals of any length."""

_SECOND_NS = 1_000_000_000
_LENGTHS_NS = {"hour": 3600 * _SECOND_NS, "minute": 60 * _SECOND_NS, "second": _SECOND_NS}


def interval_ns(key: str) -> int | None:
    """Return the length of a key of time: of hour, minute, second or `10 s`; None of others."""
    if found := re.fullmatch(r"([1-9]\d{0,6}) ?s", key):
        return int(found[1]) * _SECOND_NS
    return _LENGTHS_NS.get(key)


def is_value_field(key: str) -> bool:
    """Return whether a key is a field of decoded keys or values: `value.user.id`."""
    side, *path = key.split(".")
    return side in ("key", "value") and bool(path) and all(path)


def columns_of_key(key: str) -> tuple[str, ...] | None:
    """Return the columns that a key fills; None if it is no key."""
    if key.startswith(HOOKED) or is_value_field(key):
        return (key,)
    return KEYS.get(key) or (None if interval_ns(key) is None else (TIME_COLUMN,))


def list_of_key(key: str) -> str | None:
    """Return the column of a key with several values per row; None of others."""
    return key if key.startswith(HOOKED) or is_value_field(key) else LISTS.get(key)
