"""
Kernels that write plain packets: TCP in IP in Ethernet, whole, without options of IP.

They give the same bytes as `PacketRedactor` and `CaptureWriter`.

Source: RFC 791, RFC 8200, RFC 9293; draft-ietf-opsawg-pcapng-02, 4.3 (Enhanced Packet Block).
"""

from __future__ import annotations

from typing import NamedTuple

from dissector.capture.iana_numbers import ETHERNET
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8
from dissector.kernel.memcpy import copy_bytes

NOT_PLAIN = -1

_IPV4, _IPV6, _TCP = 0x0800, 0x86DD, 6
IP_AT = 14
IPV4_BYTES, IPV6_BYTES = 20, 40
_TCP_BYTES, _CHECKSUM_AT = 20, 16
_SACK, _NO_OPERATION, _END_OF_OPTIONS = 5, 1, 0

_ENHANCED = 6
HEAD_BYTES, BLOCK_BYTES = 28, 32
"""Bytes of a block before its packet, and of all but the packet and its padding."""


class PacketArrays(NamedTuple):
    """
    Packets of a window.

    Attributes:
        start: Where each packet is.
        captured: Its captured bytes.
        original: Its length on the wire.
        link: Its link type.
        time_ns: Its time.
        tcp_at: Receives where its TCP header begins in it, or `NOT_PLAIN`.
        payload_at: Receives where its payload begins.
        end: Receives where that ends.
    """

    start: I64
    captured: I64
    original: I64
    link: I32
    time_ns: I64
    tcp_at: I64
    payload_at: I64
    end: I64


class Blocks(NamedTuple):
    """
    Packets to write.

    Attributes:
        packet: Their rows.
        at: Where the block of each one goes.
    """

    packet: I64
    at: I64


class RangeArrays(NamedTuple):
    """
    Parts of streams to read, and the ranges of all streams.

    Attributes:
        stream: The stream of each part.
        offset: Where the part begins in its stream.
        length: Its bytes.
        at: Where it goes.
        first: Row of the first range of each stream, and the number of all ranges.
        begin: Where each range begins in its stream; ascending.
        place: Where its bytes are.
        size: Their number.
    """

    stream: I64
    offset: I64
    length: I64
    at: I64
    first: I64
    begin: I64
    place: I64
    size: I64


@device_function
def _u16(data: U8, at: int) -> int:
    value: int = data[at] << 8 | data[at + 1]
    return value


@Kernel
def find_plain(data: U8, packets: PacketArrays) -> None:
    """Find the headers of plain packets."""
    for i in range(len(packets.start)):
        packets.tcp_at[i] = NOT_PLAIN
        at, captured = packets.start[i], packets.captured[i]
        if packets.link[i] != ETHERNET or captured != packets.original[i] or captured < IP_AT + 40:
            continue
        ip, kind = at + IP_AT, _u16(data, at + 12)
        tcp = 0
        end = 0
        if kind == _IPV4:
            is_whole = _u16(data, ip + 6) & 0x3FFF == 0
            if data[ip] == 0x45 and data[ip + 9] == _TCP and is_whole:
                tcp, end = IP_AT + IPV4_BYTES, IP_AT + _u16(data, ip + 2)
        elif kind == _IPV6 and data[ip] >> 4 == 6 and data[ip + 6] == _TCP:
            tcp, end = IP_AT + IPV6_BYTES, IP_AT + IPV6_BYTES + _u16(data, ip + 4)
        if tcp == 0 or end > captured or end < tcp + _TCP_BYTES:
            continue
        payload = tcp + (data[at + tcp + 12] >> 4) * 4
        if payload < tcp + _TCP_BYTES or payload > end:
            continue
        packets.tcp_at[i] = tcp
        packets.payload_at[i] = payload
        packets.end[i] = end


@device_function
def _write_little(out: U8, at: int, value: int) -> None:
    for place in range(4):
        out[at + place] = value >> 8 * place & 255


@Kernel
def write_blocks(data: U8, packets: PacketArrays, blocks: Blocks, out: U8) -> None:
    """Write the blocks of packets with their headers; interface and payload are zeros."""
    for i in range(len(blocks.packet)):
        row, at = blocks.packet[i], blocks.at[i]
        captured, time = packets.captured[row], packets.time_ns[row]
        size = BLOCK_BYTES + captured + (-captured & 3)
        _write_little(out, at, _ENHANCED)
        _write_little(out, at + 4, size)
        _write_little(out, at + 12, time >> 32 & 0xFFFFFFFF)
        _write_little(out, at + 16, time & 0xFFFFFFFF)
        _write_little(out, at + 20, captured)
        _write_little(out, at + 24, packets.original[row])
        _write_little(out, at + size - 4, size)
        begin = at + HEAD_BYTES
        copy_bytes(out, begin, data, packets.start[row], packets.payload_at[row])
        tcp, payload = begin + packets.tcp_at[row], begin + packets.payload_at[row]
        _clean_options(out, tcp + _TCP_BYTES, payload)


@device_function
def _is_kept(kind: int, size: int) -> bool:
    """Return whether an option of TCP is about the connection only."""
    if kind == _SACK:
        return size == 10 or size == 18 or size == 26 or size == 34
    return (
        (kind == 2 and size == 4)
        or (kind == 3 and size == 3)
        or (kind == 4 and size == 2)
        or (kind == 8 and size == 10)
    )


@device_function
def _clean_options(out: U8, at: int, end: int) -> None:
    """Replace the options of TCP that are not known by padding."""
    while at < end:
        kind = 0 | out[at]
        if kind == _NO_OPERATION:
            at += 1
        else:
            size = 0
            if at + 1 < end:
                size = 0 | out[at + 1]
            if not _is_kept(kind, size) or at + size > end:
                if kind == _END_OF_OPTIONS or size < 2 or size > end - at:
                    size = end - at
                for place in range(at, at + size):
                    out[place] = _NO_OPERATION
            at += size


@Kernel
def read_ranges(source: U8, parts: RangeArrays, out: U8) -> None:
    """Copy parts of streams; bytes outside of all ranges stay."""
    for i in range(len(parts.stream)):
        stream, offset, length = parts.stream[i], parts.offset[i], parts.length[i]
        if stream < 0 or length <= 0 or stream + 1 >= len(parts.first):
            continue
        low, high = parts.first[stream], parts.first[stream + 1]
        first = low
        while low < high:
            middle = low + high >> 1
            if parts.begin[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        row = max(low - 1, first)
        while row < parts.first[stream + 1] and parts.begin[row] < offset + length:
            begin = parts.begin[row]
            start, end = max(begin, offset), min(begin + parts.size[row], offset + length)
            if start < end:
                target = parts.at[i] + start - offset
                copy_bytes(out, target, source, parts.place[row] + start - begin, end - start)
            row += 1


@device_function
def _sum_of(out: U8, at: int, end: int) -> int:
    """Return the sum of big-endian numbers of 16 bits."""
    total = 0
    while at + 1 < end:
        total += out[at] << 8 | out[at + 1]
        at += 2
    if at < end:
        total += out[at] << 8
    return total


@device_function
def _write_checksum(out: U8, at: int, total: int) -> None:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    out[at] = (total ^ 0xFFFF) >> 8
    out[at + 1] = (total ^ 0xFFFF) & 255


@Kernel
def write_checksums(packets: PacketArrays, blocks: Blocks, out: U8) -> None:
    """Write the checksums of IP and TCP."""
    for i in range(len(blocks.packet)):
        row, begin = blocks.packet[i], blocks.at[i] + HEAD_BYTES
        ip, tcp, end = begin + IP_AT, begin + packets.tcp_at[row], begin + packets.end[row]
        addresses = ip + 8
        if packets.tcp_at[row] == IP_AT + IPV4_BYTES:
            out[ip + 10] = 0
            out[ip + 11] = 0
            _write_checksum(out, ip + 10, _sum_of(out, ip, tcp))
            addresses = ip + 12
        out[tcp + _CHECKSUM_AT] = 0
        out[tcp + _CHECKSUM_AT + 1] = 0
        total = _sum_of(out, addresses, tcp) + _TCP + end - tcp + _sum_of(out, tcp, end)
        _write_checksum(out, tcp + _CHECKSUM_AT, total)
