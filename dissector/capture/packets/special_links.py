"""Link headers that have a way of their own to say how long they are: device functions."""

from __future__ import annotations

from dissector.capture.integers import u32_little
from dissector.capture.packets.skip_reasons import AGGREGATED, ENCRYPTED, MALFORMED, NOT_IP
from dissector.kernel import device_function
from dissector.kernel.arrays import U8

_PKTAP_MIN_BYTES, _PKTAP_MAX_BYTES = 108, 1024
_PAYLOAD_ITEM = 9

# Bits of the frame control field.
_DATA, _WITHOUT_DATA, _QOS = 2, 4, 8
_TO_DS, _FROM_DS, _PROTECTED, _ORDER = 1, 2, 0x40, 0x80
_AGGREGATE = 0x80


@device_function
def wireless_header_bytes(data: U8, at: int, end: int) -> int:
    """
    Return the size of an IEEE 802.11 header before data.

    Only the first fragment of a frame has the headers of IP; the others, and frames of management
    and control, are not IP. Aggregates (A-MSDU) hold several packets, and are not read.

    Source: IEEE 802.11, 9.2.
    """
    if at + 24 > end:
        return MALFORMED
    kind, flags = int(data[at]), int(data[at + 1])
    if kind & 3 or kind >> 2 & 3 != _DATA or kind >> 4 & _WITHOUT_DATA or data[at + 22] & 15:
        return NOT_IP
    if flags & _PROTECTED:
        return ENCRYPTED
    size = 24
    if flags & _TO_DS and flags & _FROM_DS:
        size += 6
    if kind >> 4 & _QOS:
        if at + size + 2 > end:
            return MALFORMED
        if data[at + size] & _AGGREGATE:
            return AGGREGATED
        size += 6 if flags & _ORDER else 2
    return size


@device_function
def nflog_header_bytes(data: U8, at: int, end: int) -> int:
    """
    Return the size of an NFLOG header: up to the content of its item with the packet.

    Items have the byte order of the capturing host: a length, which is below 256 in one of the two,
    except that of the packet, which comes last.

    Source: https://www.tcpdump.org/linktypes/LINKTYPE_NFLOG.html
    """
    item = at + 4
    while item + 4 <= end:
        little = int(data[item]) | int(data[item + 1]) << 8
        big = int(data[item]) << 8 | int(data[item + 1])
        if data[item + 2] == _PAYLOAD_ITEM and data[item + 3] == 0:
            return item + 4 - at
        if data[item + 2] == 0 and data[item + 3] == _PAYLOAD_ITEM:
            return item + 4 - at
        size = little if data[item + 3] == 0 and data[item + 2] != 0 else big
        if size < 4:
            return MALFORMED
        item += (size + 3) // 4 * 4
    return MALFORMED


@device_function
def pktap_header_bytes(data: U8, at: int, end: int) -> int:
    """
    Return the size of a PKTAP header, if the bytes are plausible as one.

    Source: https://www.tcpdump.org/linktypes/LINKTYPE_PKTAP.html
    """
    if at + _PKTAP_MIN_BYTES > end or u32_little(data, at + 4) > 1:
        return MALFORMED
    size = u32_little(data, at)
    if size < _PKTAP_MIN_BYTES or size > _PKTAP_MAX_BYTES:
        return MALFORMED
    return size
