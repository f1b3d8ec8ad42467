"""What hooks get and return; `kafkashark.hooks` publishes these names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

_NO_HEADERS: Mapping[str, bytes] = MappingProxyType({})


class Record(NamedTuple):
    """
    A record, as hooks for keys and values get it: what a program that fetches it would decode.

    Attributes:
        topic: The name of the topic; None if it is not known.
        key: The key; None without one.
        value: The value; None of a tombstone.
        headers: The headers; of several with one name the last.
        partition: The number of the partition.
        offset: The offset in the log; of a Produce request by its response. None if it is not
            known.
        timestamp: The timestamp in ms since the epoch.
        client_id: The client id of the request; None if it is not known.
        packet: The packet that completed the message with the record, from 1.
    """

    topic: str | None
    key: bytes | None = None
    value: bytes | None = None
    headers: Mapping[str, bytes] = _NO_HEADERS
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    client_id: str | None = None
    packet: int | None = None


class Request(NamedTuple):
    """
    A request, as hooks for rewrites get and return it.

    Attributes:
        api: The name of the API.
        version: Its version.
        client_id: The client id.
        body: The body, which may be changed: its fields are attributes and items, in snake case;
            fields of type records are bytes.
        connection: The number of the connection.
        packet: The packet that completed it, from 1.
    """

    api: str
    version: int
    client_id: str | None
    body: Any
    connection: int
    packet: int | None


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


class Advised(NamedTuple):
    """
    What a hook for advice yields; a text alone is what was found.

    Attributes:
        found: What was found, in one line. Equal findings of a client are one, regardless of
            numbers and quoted words.
        cost: What that costs; by default what the docstring says after its first line.
        topic: The topic that it is about, if it is about one.
        group: The group that it is about, if it is about one.
        rank: What it means: see `kafkashark advise`.
    """

    found: str
    cost: str = ""
    topic: str = ""
    group: str = ""
    rank: Literal["costly", "risky", "informs"] = "informs"


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
