"""Why a packet yields no TCP segment: the kernels' negative numbers, and their texts."""

from __future__ import annotations

MALFORMED, NOT_IP, SLOW_PATH, ENCRYPTED, AGGREGATED, NOT_TCP, LINK_UNREAD, EXPORTED_PDU = range(
    -1, -9, -1
)
"""
Returned in place of a size, an ethertype or an IP protocol. SLOW_PATH is none of them: it defers
the packet to the per-packet code; EXPORTED_PDU has tags in place of headers.
"""

CODES = 9
"""Number of counters, by the absolute value of the number."""

REASONS = {
    MALFORMED: "malformed",
    NOT_IP: "not IP",
    ENCRYPTED: "encrypted IEEE 802.11 frame",
    AGGREGATED: "aggregate of IEEE 802.11 frames",
    NOT_TCP: "not TCP",
}
