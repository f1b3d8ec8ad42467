"""Limits of reassembly: of times, waiting data and distances."""

from __future__ import annotations

WAIT_NS = 50_000_000
"""How much later than its successors on the wire a segment may be captured."""

UNACKED_WAIT_NS = 10_000_000_000
"""How long a hole may stay open where no captured acknowledgement could confirm it."""

START_WAIT_BYTES = 64 << 10
"""Limit of waiting data at the start of a stream without a captured SYN."""

MAX_WAITING_BYTES = 16 << 20
MAX_WAITING_SEGMENTS = 16 << 10
"""How much may wait behind a hole before the hole becomes a gap."""

FAR_BYTES = 64 << 20
"""Sequence numbers farther apart than this do not belong to one connection."""

RESET_WINDOW_BYTES = 1 << 20
"""How far from the next expected byte a RST is accepted."""

REPLY_WINDOW_BYTES = 1 << 20
"""How far a segment may be from the acknowledgements of the other direction."""

MAX_STEPS = 64
"""How many segments are passed in search of a place; farther from the end an object finds it."""
