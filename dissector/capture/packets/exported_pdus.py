"""
Sequence numbers for exported PDUs, which Wireshark writes without the headers of TCP.

Each PDU is the next bytes of its connection, by addresses and ports.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import NO_HEADER, Int64s, Segments, UInt64s
from dissector.capture.packets.exported_pdu_tags import UNNUMBERED

_ACK = 16
_FIRST_SEQUENCE = 1
_MODULUS = (1 << 32) - 1


class PduNumbers:
    """The bytes sent so far by each side of each connection of exported PDUs."""

    def __init__(self) -> None:
        self._sent: dict[bytes, list[int]] = {}

    def number(self, segments: Segments) -> None:
        """Set sequence numbers, acknowledgements and flags of the segments without them."""
        rows = np.flatnonzero(segments.flags == UNNUMBERED)
        if not len(rows):
            return
        source = np.column_stack([segments.source[rows], segments.source_port[rows].astype("u8")])
        target = np.column_stack([segments.target[rows], segments.target_port[rows].astype("u8")])
        is_reply = _is_greater(source, target)
        ends = np.where(is_reply[:, None], np.hstack([target, source]), np.hstack([source, target]))
        keys, group = np.unique(ends, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        group, side = group.ravel()[order], is_reply[order].astype(np.int64)
        length = segments.length[rows][order]
        first = np.flatnonzero(np.diff(group, prepend=-1))
        before = np.stack([_sum_before(np.where(side == each, length, 0)) for each in (0, 1)])
        known = [self._sent.setdefault(key.tobytes(), [0, 0]) for key in keys]
        base = np.array(known, np.int64).T - before[:, first]
        sent = before + base[:, group]
        number = np.arange(len(order))
        segments.seq[rows[order]] = (_FIRST_SEQUENCE + sent[side, number]) & _MODULUS
        segments.ack[rows[order]] = (_FIRST_SEQUENCE + sent[1 - side, number]) & _MODULUS
        segments.flags[rows] = _ACK | NO_HEADER
        last = np.append(first[1:], len(order)) - 1
        sent[side[last], last] += length[last]
        for entry, values in zip(known, sent[:, last].T.tolist(), strict=True):
            entry[:] = values


def _sum_before(lengths: Int64s) -> Int64s:
    before: Int64s = np.cumsum(lengths) - lengths
    return before


def _is_greater(source: UInt64s, target: UInt64s) -> NDArray[np.bool_]:
    """Return whether endpoints, rows of numbers, are greater than others."""
    greater = np.zeros(len(source), bool)
    decided = np.zeros(len(source), bool)
    for column in range(source.shape[1]):
        greater |= ~decided & (source[:, column] > target[:, column])
        decided |= source[:, column] != target[:, column]
    return greater
