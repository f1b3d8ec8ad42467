"""TCP connections as rows, for the `streams` command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dissector.column_catalogue import CONNECTIONS, names
from dissector.engine.reading.capture import Reading
from dissector.engine.reading.spoken import spoken_by
from dissector.engine.reading.tls_report import tls_columns

SIDES = ("a", "b")

COLUMNS = names(CONNECTIONS)
"""The columns of `streams`, in order."""


def connection_rows(
    reading: Reading, numbers: Iterable[int] | None = None
) -> Iterator[dict[str, Any]]:
    """
    Yield a row for each TCP connection of a capture that has been read, or for some of them.

    `a` is the side that opened the connection, or sent first; `client` is the endpoint that sends
    requests. `speaks` is `kafka`, `tls`, `other`, or null without bytes; `protocols` is what each
    side spoke by its first bytes. `entered` is the offset in the stream of the first plausible
    Kafka frame, `skipped` counts bytes without one; of decrypted connections both are about the
    plaintext.
    """
    connections = reading.streams.connections
    chosen = np.arange(len(connections)) if numbers is None else np.array([*numbers], np.int64)
    missing = connections.missing_sides(chosen).tolist()
    for connection, missing_side in zip(connections.of(chosen), missing, strict=True):
        state = reading.correlator.state_of(connection.id)
        kafka = state if state is not None and state.speaks == "kafka" else None
        row: dict[str, Any] = {
            "connection": connection.id,
            "network": reading.source.networks[connection.network],
            "a": connection.a_text,
            "b": connection.b_text,
            "speaks": (state.speaks or None) if state else None,
            "protocols": " / ".join(spoken_by(reading, connection.id)),
            "client": None if state is None or state.client is None else SIDES[state.client],
            "origin": kafka and reading.correlator.origins([connection.id])[0],
            "first_time_ns": connection.first_ns,
            "last_time_ns": connection.last_ns,
            "ended": connection.ended or None,
            "copy_of": reading.copies and reading.copies.found.get(connection.id),
            "not_captured": None if missing_side < 0 else SIDES[missing_side],
            "rtt_ms": _milliseconds(connection.rtt_ns),
        }
        for name, side in zip(SIDES, connection.sides, strict=True):
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
                f"acked_not_captured_{name}": side.acked_not_captured,
                f"zero_window_ms_{name}": _milliseconds(side.zero_window_ns),
                f"rtt_ms_{name}": _milliseconds(side.handshake_ns),
                f"srtt_ms_{name}": _milliseconds(side.srtt_ns),
            }
        row |= tls_columns(reading.decryption.summary_of(connection.id))
        yield {name: row[name] for name in COLUMNS}


def _milliseconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6
