"""What hooks get and return; `kafkashark.hooks` publishes these names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Record(NamedTuple):
    """
    A record, as hooks for keys and values get it: what a program that fetches it would decode.

    Attributes:
        topic: The name of the topic; None if it is not known.
        key: The key, for hooks of keys.
        value: The value, for hooks of values.
        headers: The headers; of several with one name the last.
    """

    topic: str | None
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


class Decoded(NamedTuple):
    """
    What a hook for keys or values may return in place of the value alone.

    Attributes:
        value: The value, in the types of JSON.
        format: The name of its format; by default that of the script or entry point.
        schema: The name of its schema, such as subject and version.
    """

    value: Any
    format: str | None = None
    schema: str | None = None


class Violation(NamedTuple):
    """
    What a hook for rules yields; a text alone is one of the client, and an error.

    Attributes:
        found: What was found, in one line. Equal findings are counted together, regardless of
            numbers and quoted words.
        side: Who is to blame.
        field: The field in the body of its message, such as `topics[0].name`.
        severity: How bad it is.
    """

    found: str
    side: Literal["client", "broker"] = "client"
    field: str = ""
    severity: Literal["error", "warning", "note"] = "error"
