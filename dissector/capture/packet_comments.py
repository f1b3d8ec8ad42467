"""
Comments that users gave packets: options of the blocks of pcapng.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html (options: `opt_comment`)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import SEVERAL, Bytes, Int64s, Packets
from dissector.capture.formats.block_comments import (
    COMMENT,
    END_OF_OPTIONS,
    MAX_OPTIONS,
    options_of,
)
from dissector.capture.formats.pcapng import ENHANCED, OBSOLETE, PACKET_HEAD_BYTES

MAX_COMMENTS, MAX_COMMENT_BYTES = 100, 1 << 16
"""Of one packet, that many comments are read, and bytes of them in all."""

_HEAD_WORDS = 7
_KIND, _LENGTH, _CAPTURED = 0, 1, 5
"""Words of the head of a packet's block."""


def packet_comments(packets: Packets) -> Iterator[tuple[int, list[str]]]:
    """
    Yield the packets of a window that have comments: the number in the capture, and the comments.

    Comments of files that overlap in time are not found: merged windows have packets only.
    """
    if packets.path_index == SEVERAL:
        return
    for begin, end, is_pcapng in packets.spans:
        if is_pcapng:
            yield from _of_span(packets, begin, min(end, len(packets.data)))


def _of_span(packets: Packets, begin: int, end: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the comments of the packets between two places of the window."""
    rows = np.arange(*np.searchsorted(packets.start, (begin + PACKET_HEAD_BYTES, end)))
    if not len(rows):
        return
    start, captured = packets.start[rows], packets.captured[rows]
    heads = _bytes_at(packets.data, start - PACKET_HEAD_BYTES, PACKET_HEAD_BYTES)
    for order in "<>":
        words = heads.view(f"{order}u4").reshape(-1, _HEAD_WORDS).astype(np.int64)
        first = start + captured + -captured % 4
        stop = start - PACKET_HEAD_BYTES + words[:, _LENGTH] + -words[:, _LENGTH] % 4 - 4
        # A simple packet's block has a shorter head, whose words here do not fit.
        is_block = np.isin(words[:, _KIND], (ENHANCED, OBSOLETE))
        is_block &= (words[:, _CAPTURED] == captured) & (stop - first >= 4) & (stop <= end)
        chosen = np.flatnonzero(is_block)
        chosen = chosen[_have_comments(packets.data, first[chosen], stop[chosen], order)]
        for at in chosen.tolist():
            options = packets.data[first[at] : stop[at]].tobytes()
            if found := list(_comments(options, order)):
                yield packets.first + int(rows[at]), found


def _have_comments(data: Bytes, first: Int64s, stop: Int64s, order: str) -> NDArray[np.bool_]:
    """Return whether options of blocks have a comment; most have flags and the like only."""
    found, at, active = np.zeros(len(first), np.bool_), first.copy(), np.arange(len(first))
    for _ in range(MAX_OPTIONS):
        active = active[at[active] + 4 <= stop[active]]
        if not len(active):
            break
        words = _bytes_at(data, at[active], 4).view(f"{order}u2").astype(np.int64)
        codes, lengths = words[:, 0], words[:, 1]
        found[active] = codes == COMMENT
        at[active] += 4 + lengths + -lengths % 4
        active = active[(codes != COMMENT) & (codes != END_OF_OPTIONS)]
    return found


def _bytes_at(data: Bytes, at: Int64s, count: int) -> Bytes:
    """Return that many bytes at each of some places, a row each."""
    found: Bytes = np.lib.stride_tricks.sliding_window_view(data, count)[at]
    return found


def _comments(options: bytes, order: str) -> Iterator[str]:
    """Yield the comments among options; a byte that is not UTF-8 is kept as a lone surrogate."""
    room = MAX_COMMENT_BYTES
    found = (value for code, value in options_of(order, options) if code == COMMENT)
    for value in islice(found, MAX_COMMENTS):
        if not room:
            return
        text = value[:room]
        room -= len(text)
        yield text.decode("utf-8", "surrogateescape")
