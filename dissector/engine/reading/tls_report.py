"""Reports about TLS connections, and about captures without Kafka."""

from __future__ import annotations

from typing import Any

from dissector.column_catalogue import TLS, names
from dissector.engine.reading.reader import Reading
from dissector.engine.reading.spoken import mismatches
from dissector.tls.tls_summary import LINES_MAY_COME, Reason, TlsSummary

COLUMNS = names(TLS)
"""TLS columns of `streams`; null for connections without TLS, and if unknown."""


WAYS_TO_KEYS = (
    "--keylog FILE, which SSLKEYLOGFILE of a client writes, or an agent in a broker or Java client "
    "(docs/tls.md)"
)
"""What helps without a key log."""

_NO_PAYLOAD = 20
"""A capture with less than this part of its payload has none."""


def tls_columns(summary: TlsSummary | None) -> dict[str, Any]:
    """Return the values of `COLUMNS` of a connection."""
    if summary is None:
        return dict.fromkeys(COLUMNS)
    resumed = None if summary.resumed is None else ("no", "yes")[summary.resumed]
    values = (
        summary.version or "TLS",
        summary.suite or None,
        summary.server_name or None,
        resumed,
        summary.client_subject or None,
        None if summary.reason is None else summary.reason.value,
    )
    return dict(zip(COLUMNS, values, strict=True))


def unreadable_tls(reading: Reading) -> str:
    """Return the reason why a capture with TLS only is unreadable; empty for other captures."""
    decryption = reading.decryption
    if decryption.decrypted_count or not len(decryption):
        return ""
    if reading.correlator.spoken()["kafka"]:
        return ""
    unlike = sum(1 for connection, _ in mismatches(reading) if decryption.summary_of(connection.id))
    count = len(decryption) - unlike
    if not count:
        return ""
    reasons = decryption.reasons()
    reason = reasons.most_common(1)[0][0] if reasons else Reason.NO_DATA
    why = WAYS_TO_KEYS if reason is Reason.NO_KEY_LOG else reason.value
    if (skipped := reading.keys.skipped) and reason in LINES_MAY_COME:
        why += f" ({skipped:,} unknown line{'s' * (skipped != 1)} skipped)"
    return f"{count:,} TLS connection{'s' * (count != 1)}, none readable: {why}"


def without_kafka(reading: Reading) -> str:
    """Return the other contents of a capture without Kafka; empty if it has some, or no packet."""
    spoken = reading.correlator.spoken()
    if not reading.packets or spoken["kafka"]:
        return ""
    message = f"no Kafka in {reading.packets:,} packets and {spoken.total():,} TCP connections"
    ports = " on the ports of --port" if reading.options.ports else ""
    tls = spoken["tls"]
    return (
        message
        + ports
        + (f"; {tls:,} of these are encrypted (TLS)" if tls else "")
        + _cut_packets(reading)
    )


def _cut_packets(reading: Reading) -> str:
    """Return at which size the packets of a capture were cut, if that took most of the payload."""
    cut, captured = reading.streams.connections.sums("cut_bytes", "bytes")
    if cut <= captured or not reading.source.longest_packet:
        return ""
    size = reading.source.longest_packet
    left = "there is no payload" if captured <= cut // _NO_PAYLOAD else "most payload is missing"
    return f": every packet was cut at {size:,} bytes: {left} (capture with -s 0)"
