"""IPv4 and IPv6 headers, whole columns at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Bytes, Int64s
from dissector.capture.gather import Located, u8, u16, u32

TCP, UDP = 6, 17
CARRIERS = (4, 41, 47, 97, 137)
"""IP protocols that carry packets: IPv4, IPv6, GRE, EtherIP, MPLS."""

HOP_BY_HOP, FRAGMENT, AUTHENTICATION = 0, 44, 51
EXTENSIONS = (HOP_BY_HOP, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140)
"""IPv6 extension headers. Source: IANA, IPv6 extension header types; RFC 8200, RFC 4302."""

JUMBO = 0xC204
"""Type and length of the jumbo payload option. Source: RFC 2675."""

_MAX_EXTENSIONS = 16

IS_FRAGMENT = -1
MALFORMED = -2


def enter_ipv4(data: Bytes, located: Located) -> Int64s:
    """
    Step over IPv4 headers, in place in `located`.

    The ends become those of the IP packet. A total length of 0 is what hosts show of packets that
    the network card will cut (segmentation offload): it ends where the frame does.

    Returns:
        The protocol that each carries, or IS_FRAGMENT (`at` stays), or MALFORMED.

    Source: RFC 791.
    """
    protocol = np.full(len(located), MALFORMED, dtype=np.int64)
    rows = np.flatnonzero(located.has(20))
    at = located.at[rows]
    first = u8(data, at)
    size = (first & 15) * 4
    total = u16(data, at + 2)
    good = (first >> 4 == 4) & (size >= 20) & ((total >= size) | (total == 0))
    good &= at + size <= located.end[rows]
    rows, at, size, total = rows[good], at[good], size[good], total[good]
    located.sent_end[rows] = np.where(total > 0, at + total, located.sent_end[rows])
    located.end[rows] = np.minimum(located.end[rows], located.sent_end[rows])
    whole = u16(data, at + 6) & 0x3FFF == 0
    protocol[rows] = np.where(whole, u8(data, at + 9), IS_FRAGMENT)
    located.at[rows] += np.where(whole, size, 0)
    return protocol


def enter_ipv6(data: Bytes, located: Located) -> Int64s:
    """
    Step over IPv6 headers and their extension headers, in place in `located`.

    A payload length of 0 means a jumbo payload, by its option or to the end of the frame.

    Returns:
        The protocol that each carries, or IS_FRAGMENT, or MALFORMED; `at` is wrong for these.

    Source: RFC 8200.
    """
    protocol = np.full(len(located), MALFORMED, dtype=np.int64)
    rows = np.flatnonzero(located.has(40))
    rows = rows[u8(data, located.at[rows]) >> 4 == 6]
    at = located.at[rows]
    length = u16(data, at + 4)
    protocol[rows] = u8(data, at + 6)
    jumbo = rows[length == 0]
    located.sent_end[rows] = np.where(length > 0, at + 40 + length, located.sent_end[rows])
    located.at[rows] += 40
    _enter_jumbo(data, located, jumbo, protocol)
    located.end[rows] = np.minimum(located.end[rows], located.sent_end[rows])
    for _ in range(_MAX_EXTENSIONS):
        rows = np.flatnonzero(np.isin(protocol, EXTENSIONS))
        if not len(rows):
            break
        _enter_extension(data, located, rows, protocol)
    protocol[np.isin(protocol, EXTENSIONS)] = MALFORMED
    return protocol


def _enter_jumbo(data: Bytes, located: Located, rows: Int64s, protocol: Int64s) -> None:
    """Take the length of a jumbo payload from the option, where senders put it: first."""
    at = located.at[rows]
    rows = rows[(protocol[rows] == HOP_BY_HOP) & (at + 8 <= located.end[rows])]
    rows = rows[u16(data, located.at[rows] + 2) == JUMBO]
    located.sent_end[rows] = located.at[rows] + u32(data, located.at[rows] + 4)


def _enter_extension(data: Bytes, located: Located, rows: Int64s, protocol: Int64s) -> None:
    at = located.at[rows]
    fits = at + 8 <= located.end[rows]
    protocol[rows[~fits]] = MALFORMED
    rows, at = rows[fits], at[fits]
    kind = protocol[rows]
    units = u8(data, at + 1)
    size = np.where(kind == AUTHENTICATION, (units + 2) * 4, (units + 1) * 8)
    size = np.where(kind == FRAGMENT, 8, size)
    cut = (kind == FRAGMENT) & _is_part(u16(data, at + 2))
    protocol[rows] = np.where(cut, IS_FRAGMENT, u8(data, at))
    located.at[rows] += size


def _is_part(field: Int64s) -> NDArray[np.bool_]:
    """An atomic fragment, offset 0 and none more, is a whole packet. Source: RFC 6946."""
    return np.asarray(field & 0xFFF9 != 0)
