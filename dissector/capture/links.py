"""Link layers and VLAN tags, whole columns at a time."""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import Bytes, Int64s, Packets
from dissector.capture.gather import Located, u8, u16, u32

IPV4, IPV6 = 0x0800, 0x86DD
VLAN_TYPES = (0x8100, 0x88A8, 0x9100, 0x9200)

NOT_IP = -1
MALFORMED = -2

# LINKTYPE_ -> bytes of its header, offset of the ethertype in it.
# Source: https://www.tcpdump.org/linktypes.html
_WITH_ETHERTYPE = {1: (14, 12), 113: (16, 14), 276: (20, 0)}
_LOOPBACK = (0, 108)
_RAW = (12, 14, 101)
_ALWAYS = {228: IPV4, 229: IPV6}

# Address families as the BSDs number them: theirs and macOS's IPv6 differ.
_FAMILIES = {2: IPV4, 10: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}

_MAX_TAGS = 4
_VLAN_BITS = 12


def enter_links(packets: Packets) -> tuple[Located, Int64s]:
    """
    Find what each packet's link layer carries.

    Returns:
        Where that starts, and its ethertype, or NOT_IP, or MALFORMED.
    """
    end = packets.start + packets.captured
    sent = np.where(packets.original > 0, packets.original, packets.captured)
    located = Located(
        np.arange(len(packets), dtype=np.int64),
        packets.start.copy(),
        end,
        packets.start + sent,
    )
    kind = np.full(len(packets), NOT_IP, dtype=np.int64)
    for link in np.unique(packets.link).tolist():
        rows = np.flatnonzero(packets.link == link)
        _enter_link(packets.data, link, located, kind, rows)
    return located, kind


def _enter_link(data: Bytes, link: int, located: Located, kind: Int64s, rows: Int64s) -> None:
    if link in _WITH_ETHERTYPE:
        size, offset = _WITH_ETHERTYPE[link]
        rows = _long_enough(located, kind, rows, size)
        kind[rows] = u16(data, located.at[rows] + offset)
        located.at[rows] += size
    elif link in _LOOPBACK:
        rows = _long_enough(located, kind, rows, 4)
        kind[rows] = _family(u32(data, located.at[rows]))
        located.at[rows] += 4
    elif link in _RAW:
        rows = _long_enough(located, kind, rows, 1)
        version = u8(data, located.at[rows]) >> 4
        kind[rows] = np.select([version == 4, version == 6], [IPV4, IPV6], NOT_IP)
    elif link in _ALWAYS:
        kind[rows] = _ALWAYS[link]


def _long_enough(located: Located, kind: Int64s, rows: Int64s, size: int) -> Int64s:
    fits = located.at[rows] + size <= located.end[rows]
    kind[rows[~fits]] = MALFORMED
    return rows[fits]


def _family(value: Int64s) -> Int64s:
    """A loopback's family is in the byte order of the host that captured: below 256 in one."""
    swapped = value >> 24 & 0xFF | value >> 8 & 0xFF00 | value << 8 & 0xFF0000
    family = np.where(value < 256, value, swapped)
    kind = np.full(len(value), NOT_IP, dtype=np.int64)
    for number, ethertype in _FAMILIES.items():
        kind[family == number] = ethertype
    return kind


def strip_tags(data: Bytes, located: Located, kind: Int64s) -> Int64s:
    """
    Step over VLAN tags, in place in `located` and `kind`.

    Returns:
        The VLAN ids of each packet as digits of base 4096, outermost first; 0 for none. Id 0 is
        a tag for priority only and no VLAN. Source: IEEE 802.1Q.
    """
    tags = np.zeros(len(located), dtype=np.int64)
    for _ in range(_MAX_TAGS):
        rows = np.flatnonzero(np.isin(kind, VLAN_TYPES))
        if not len(rows):
            return tags
        rows = _long_enough(located, kind, rows, 4)
        vlan = u16(data, located.at[rows]) & 0xFFF
        tags[rows] = np.where(vlan > 0, tags[rows] << _VLAN_BITS | vlan, tags[rows])
        kind[rows] = u16(data, located.at[rows] + 2)
        located.at[rows] += 4
    kind[np.isin(kind, VLAN_TYPES)] = MALFORMED
    return tags


def tags_text(tags: int) -> str:
    """Return the name of the network that these tags make: `vlan 5.7`."""
    ids: list[str] = []
    while tags:
        ids.append(str(tags & 0xFFF))
        tags >>= _VLAN_BITS
    return f"vlan {'.'.join(reversed(ids))}" if ids else ""
