"""The rows of `streams` and `pairs` of a capture, by the second reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.oracle.rows.plain_exchanges import Pairing, protocol_of
from tests.oracle.rows.plain_tcp import Connection, connections_of
from tests.oracle.rows.plain_tls import decrypt

Rows = list[dict[str, Any]]

CLUSTER_METADATA = UUID(int=1)
"""The id of `__cluster_metadata`. Source: KIP-595; Kafka, Uuid.java (METADATA_TOPIC_ID)."""

NEVER = ("gaps", "gap_bytes", "cut_bytes", "late_bytes", "acked_not_captured")
"""Counters of `streams` about bytes that are not there: this reader refuses such captures."""


def rows_of(capture: Path, keylogs: tuple[Path, ...]) -> tuple[Rows, Rows]:
    """Return the rows of `streams` and of `pairs`, without the columns about TLS."""
    connections = connections_of(capture)
    protocols = [[protocol_of(side.chunks) for side in each.sides] for each in connections]
    for keylog in keylogs:
        decrypt(connections, capture, keylog)
    pairings = list(map(Pairing, connections))
    streams = [
        {"connection": number, "protocols": " / ".join(names), **stream_row(pairing)}
        for number, (names, pairing) in enumerate(zip(protocols, pairings, strict=True))
    ]
    pairs = [
        {"connection": number, **row}
        for number, pairing in enumerate(pairings)
        if pairing.client is not None
        for row in pairing.rows()
    ]
    replace_topic_ids(pairs)
    return streams, pairs


def stream_row(pairing: Pairing) -> dict[str, Any]:
    """Return the columns of `streams` of a connection."""
    connection, client = pairing.connection, pairing.client
    sides = dict(zip("ab", connection.sides, strict=True))
    row: dict[str, Any] = {
        "network": "",
        "a": sides["a"].endpoint,
        "b": sides["b"].endpoint,
        "speaks": speaks(connection, client),
        "client": None if client is None else "ab"[client],
        "origin": None,
        "first_time_ns": connection.first_ns,
        "last_time_ns": connection.last_ns,
        "ended": connection.ended,
        "copy_of": None,
        "not_captured": None,
        "rtt_ms": None
        if None in (halves := [side.handshake for side in connection.sides])
        else sum(each for each in halves if each is not None) / 1e6,
    }
    for name, side in sides.items():
        other = client is not None and protocol_of(side.chunks) not in ("kafka", "nothing")
        row |= {
            f"packets_{name}": side.packets,
            f"bytes_{name}": side.bytes,
            f"retransmissions_{name}": side.retransmissions,
            f"retransmitted_{name}": side.retransmitted,
            f"skipped_{name}": side.bytes if other else 0,
            f"entered_{name}": None if client is None else 0,
            f"zero_window_ms_{name}": side.zero_window(connection.last_ns) / 1e6,
            f"rtt_ms_{name}": milliseconds(side.handshake),
            f"srtt_ms_{name}": milliseconds(side.smoothed),
            **{f"{counter}_{name}": 0 for counter in NEVER},
        }
    return row


def milliseconds(nanoseconds: float | None) -> Any:
    """Return a time in milliseconds; the product smooths in whole nanoseconds."""
    return None if nanoseconds is None else pytest.approx(nanoseconds / 1e6, abs=1e-5)


def speaks(connection: Connection, client: int | None) -> str | None:
    """Return the protocol of a connection; None without bytes."""
    if client is not None:
        return "kafka"
    return "tls" if any(side.chunks for side in connection.sides) else None


def replace_topic_ids(pairs: Rows) -> None:
    """Replace topic ids by the names that the capture has for them anywhere; drop `names`."""
    names: dict[Any, str] = {CLUSTER_METADATA: "__cluster_metadata"}
    for row in pairs:
        names |= row.pop("names")
    for row in pairs:
        row["topics"] = list(dict.fromkeys(names.get(each, str(each)) for each in row["topics"]))
