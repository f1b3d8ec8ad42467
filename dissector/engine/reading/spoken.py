"""
The protocols that the two sides of a connection speak, by their first bytes.

A client of another protocol than its server's is one of the most frequent faults: TLS at a
plaintext port, plaintext at a TLS port, Kafka at an HTTP server.

Source: RFC 8446 5.1 and 6 (TLS records and alerts); RFC 9112 (HTTP); RFC 4253 4.2 (SSH). A broker
takes the first 4 bytes for a size, and closes the connection if it is above
`socket.request.max.bytes`: KAFKA-4493 is the reverse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Int64s

if TYPE_CHECKING:
    from dissector.capture.tcp.connections import Connection
    from dissector.engine.reading.reader import Reading

NOTHING, KAFKA, TLS, ALERT, HTTP, OTHER = "nothing", "kafka", "tls", "tls alert", "http", "other"

_HANDSHAKE, _ALERT_RECORD = 22, 21
_RECORDS = (20, _ALERT_RECORD, _HANDSHAKE, 23)
_HTTP_WORDS = "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"
_HTTP_BEGINS = (*(f"{word} ".encode()[:7] for word in _HTTP_WORDS), b"HTTP/1.", b"PRI * H")
_FIRST_BYTES = sorted({_HANDSHAKE, _ALERT_RECORD, *(each[0] for each in _HTTP_BEGINS)})

_ALERTS = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    22: "record_overflow",
    40: "handshake_failure",
    42: "bad_certificate",
    47: "illegal_parameter",
    50: "decode_error",
    70: "protocol_version",
    80: "internal_error",
    86: "inappropriate_fallback",
    109: "missing_extension",
    112: "unrecognized_name",
    116: "certificate_required",
}


def protocol_of(first: bytes) -> str:
    """Return the protocol of a stream by its first bytes, if they tell it; else empty."""
    if len(first) >= 3 and first[1] == 3 and first[2] <= 4 and first[0] in (22, 21):
        return TLS if first[0] == _HANDSHAKE else ALERT
    if any(first.startswith(each) for each in _HTTP_BEGINS):
        return HTTP
    return "ssh" if first.startswith(b"SSH-") else ""


def spoken_by(reading: Reading, connection: int) -> tuple[str, str]:
    """Return what both sides of a connection speak: `NOTHING` of a side without bytes."""
    state = reading.correlator.state_of(connection)
    speaks = OTHER if state is None else state.speaks or OTHER
    first, second = (_side(reading, connection, side, speaks) for side in (0, 1))
    return first, second


def speaks_http(reading: Reading, since: int = 0) -> bool:
    """Return whether a server speaks HTTP, on an open connection or on one of these numbers."""
    connections = reading.streams.connections
    numbers = np.union1d(connections.numbers, np.arange(since, connections.size))
    answers = np.argwhere(connections.first_byte(numbers) == ord("H"))
    return any(
        protocol_of(connections.first_bytes(int(numbers[row]), int(side))) == HTTP
        for row, side in answers
    )


def _side(reading: Reading, connection: int, side: int, speaks: str) -> str:
    first = reading.streams.connections.first_bytes(connection, side)
    if not first:
        return NOTHING
    if speaks == TLS and first[0] not in _RECORDS:
        speaks = OTHER  # the other side speaks TLS
    return protocol_of(first) or speaks


def mismatch(reading: Reading, connection: Connection) -> str:
    """Return how the protocols of the two sides differ, as a sentence; empty if they do not."""
    sides = spoken_by(reading, connection.id)
    state = reading.correlator.state_of(connection.id)
    client = 0 if state is None or state.client is None else state.client
    asks, answers = sides[client], sides[1 - client]
    if asks in (answers, NOTHING):
        return ""
    if answers == ALERT and asks != TLS:
        first = reading.streams.connections.first_bytes(connection.id, 1 - client)
        name = _ALERTS.get(first[6], str(first[6])) if len(first) > 6 else ""
        alert = f" ({name})" if name else ""
        return f"the client spoke {_named(asks)}, and the server TLS: it answered an alert{alert}"
    if answers == HTTP:
        return f"the client spoke {_named(asks)}, and the server HTTP"
    if answers == NOTHING and asks in (TLS, HTTP) and connection.ended in ("fin", "rst"):
        return (
            f"the client spoke {_named(asks)}, and the connection was closed without an answer, "
            "as brokers do at a plaintext port"
        )
    if asks in (TLS, HTTP) and answers in (KAFKA, "ssh", OTHER):
        return f"the client spoke {_named(asks)}, and the server {_named(answers)}"
    return ""


def _named(protocol: str) -> str:
    return {KAFKA: "Kafka", OTHER: "another protocol"}.get(protocol, protocol.upper())


def mismatches(reading: Reading) -> Iterator[tuple[Connection, str]]:
    """Yield the connections whose sides speak different protocols, and how they differ."""
    for numbers in reading.streams.connections.parts():
        yield from mismatches_among(reading, numbers)


def mismatches_among(reading: Reading, numbers: Int64s) -> Iterator[tuple[Connection, str]]:
    """Yield some connections whose sides speak different protocols, and how they differ."""
    connections = reading.streams.connections
    for connection in connections.of(numbers[_may_differ(connections.first_byte(numbers))]):
        text = mismatch(reading, connection)
        if text:
            yield connection, text


def _may_differ(first_byte: Int64s) -> NDArray[np.bool_]:
    """Return of which connections only one side begins like TLS, or either like HTTP."""
    is_told = np.isin(first_byte, _FIRST_BYTES)
    found: NDArray[np.bool_] = is_told.any(axis=1) & (first_byte[:, 0] != first_byte[:, 1])
    return found
