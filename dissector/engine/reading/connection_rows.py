"""TCP connections as rows: what the `streams` command prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dissector.engine.reading.capture import Reading

SIDES = ("a", "b")

COLUMNS = (
    "connection",
    "network",
    "a",
    "b",
    "speaks",
    "client",
    "first_time_ns",
    "last_time_ns",
    "ended",
    *(
        f"{name}_{side}"
        for name in (
            "packets",
            "bytes",
            "retransmissions",
            "retransmitted",
            "gaps",
            "gap_bytes",
            "cut_bytes",
            "late_bytes",
            "skipped",
            "entered",
        )
        for side in SIDES
    ),
)
"""The columns of `streams`, in order."""


def connection_rows(
    reading: Reading, numbers: Iterable[int] | None = None
) -> Iterator[dict[str, Any]]:
    """
    Yield a row for each TCP connection of a capture that has been read, or for these.

    `a` is who opened the connection, or sent first; `client` says which of the two sends requests.
    `speaks` is `kafka`, `tls`, `other`, or null where nothing was said. `entered` is the offset in
    the stream at which Kafka was first believed, `skipped` the bytes in which it was not.
    """
    connections = reading.streams.connections
    for known in connections if numbers is None else map(connections.__getitem__, numbers):
        talk = reading.correlator.state_of(known.id)
        row: dict[str, Any] = {
            "connection": known.id,
            "network": reading.source.networks[known.network],
            "a": known.a_text,
            "b": known.b_text,
            "speaks": (talk.speaks or None) if talk else None,
            "client": None if talk is None or talk.client is None else SIDES[talk.client],
            "first_time_ns": known.first_ns,
            "last_time_ns": known.last_ns,
            "ended": known.ended or None,
        }
        for name, side in zip(SIDES, known.sides, strict=True):
            kafka = talk if talk is not None and talk.speaks == "kafka" else None
            number = SIDES.index(name)
            row |= {
                f"packets_{name}": side.packets,
                f"bytes_{name}": side.bytes,
                f"retransmissions_{name}": side.retransmitted_segments,
                f"retransmitted_{name}": side.retransmitted_bytes,
                f"gaps_{name}": side.gaps,
                f"gap_bytes_{name}": side.gap_bytes,
                f"cut_bytes_{name}": side.cut_bytes,
                f"late_bytes_{name}": side.late_bytes,
                f"skipped_{name}": kafka.skipped[number] if kafka else 0,
                f"entered_{name}": kafka.entered[number] if kafka else None,
            }
        yield {name: row[name] for name in COLUMNS}
