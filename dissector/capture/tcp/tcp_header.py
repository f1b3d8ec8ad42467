"""Flags and sequence numbers of TCP headers."""

from __future__ import annotations

FIN, SYN, RST, ACK = 1, 2, 4, 16

SEQ_MASK = (1 << 32) - 1
"""Sequence numbers have 32 bits."""
