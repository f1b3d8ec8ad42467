"""The tags of exported PDUs: a device function of the header kernel."""

from __future__ import annotations

from dissector.capture.addresses import IPV4_MAPPED
from dissector.capture.integers import u16, u32
from dissector.capture.packets.ip import address_half
from dissector.capture.packets.segment_columns import SegmentTable
from dissector.capture.packets.skip_reasons import EXPORTED_PDU, MALFORMED, NOT_TCP
from dissector.kernel import device_function
from dissector.kernel.arrays import U8

UNNUMBERED = 1 << 16
"""In the place of TCP flags: a segment without sequence numbers."""

_END, _IPV4_SOURCE, _IPV6_TARGET, _PORT_TYPE, _SOURCE_PORT, _TARGET_PORT = 0, 20, 23, 24, 25, 26
_TCP_PORTS = 2
_HAS_SOURCE, _HAS_TARGET, _HAS_PORTS = 1, 2, 12

_MAX_SEGMENT_BYTES = 16 << 20


@device_function
def read_exported_pdu(
    data: U8, at: int, end: int, sent_end: int, table: SegmentTable, row: int
) -> int:
    """
    Write the addresses, the ports and the place of a PDU into a row.

    Tags have a type and a length of 2 bytes each, and a value. PDUs of other transports than TCP
    have another type of ports, or none.

    Returns:
        `EXPORTED_PDU` if it is one of TCP; else the reason why not.

    Source: https://www.tcpdump.org/linktypes/LINKTYPE_WIRESHARK_UPPER_PDU.html
    """
    found = 0
    is_tcp = False
    while True:
        if at + 4 > end:
            return MALFORMED
        tag, size = u16(data, at), u16(data, at + 2)
        at += 4
        if tag == _END:
            break
        if at + size > end:
            return MALFORMED
        if _IPV4_SOURCE <= tag <= _IPV6_TARGET and size == (4 if tag < _IPV4_SOURCE + 2 else 16):
            side = (tag - _IPV4_SOURCE) & 1
            high, low = 0, 0
            if size == 4:
                low = IPV4_MAPPED | u32(data, at)
            else:
                high, low = address_half(data, at), address_half(data, at + 8)
            table.addresses[side, row, 0] = high
            table.addresses[side, row, 1] = low
            found |= _HAS_SOURCE << side
        elif tag == _PORT_TYPE and size == 4:
            is_tcp = u32(data, at) == _TCP_PORTS
        elif tag in (_SOURCE_PORT, _TARGET_PORT) and size == 4:
            side = tag - _SOURCE_PORT
            if side:
                table.target_port[row] = u32(data, at) & 0xFFFF
            else:
                table.source_port[row] = u32(data, at) & 0xFFFF
            found |= 4 << side
        at += size
    if not is_tcp or found != _HAS_SOURCE | _HAS_TARGET | _HAS_PORTS:
        return NOT_TCP
    if sent_end - at > _MAX_SEGMENT_BYTES:
        return MALFORMED
    table.start[row] = at
    table.length[row] = sent_end - at
    table.captured[row] = end - at
    table.flags[row] = UNNUMBERED
    return EXPORTED_PDU
