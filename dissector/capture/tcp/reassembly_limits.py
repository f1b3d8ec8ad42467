"""Limits of reassembly: of times, waiting data and distances."""

from __future__ import annotations

WAIT_NS = 50_000_000
"""Maximum delay of a segment's capture after its successors on the wire."""

UNACKED_WAIT_NS = 10_000_000_000
"""Maximum age of a hole that no captured acknowledgement could confirm."""

CHECK_NS = 1_000_000_000
"""Interval in which holes are checked for that age: how late one may become a gap."""

START_WAIT_BYTES = 64 << 10
"""Limit of waiting data at the start of a stream without a captured SYN."""

MAX_WAITING_BYTES = 16 << 20
MAX_WAITING_SEGMENTS = 16 << 10
"""Limit of waiting data after a hole; beyond it the hole becomes a gap."""

IDLE_NS = 60_000_000_000
"""
Connections that are silent for this time are packed; the double time if that happens again, and so
on.
"""

FAR_BYTES = 64 << 20
"""Sequence numbers farther apart than this do not belong to one connection."""

RESET_WINDOW_BYTES = 1 << 20
"""Distance from the next expected byte within which a RST is accepted."""

REPLY_WINDOW_BYTES = 1 << 20
"""Maximum distance of a segment from the acknowledgements of the other direction."""
