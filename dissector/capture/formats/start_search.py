"""The search for the next packet in damaged bytes: kernels for pcap and pcapng."""

from __future__ import annotations

from dissector.capture.formats.packet_rows import MAX_RECORD_BYTES, RecordForm
from dissector.capture.integers import u16, u32, u32_of
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8

CHAIN = 3
"""Consecutive record headers required to accept the first, in a search for the next packet."""

MAX_PACKET_BYTES = 1 << 18
"""No packet of a chain is longer; a longer packet is found when reading on."""

MAX_APART_S = 1 << 17
"""Maximum distance between the times of neighbouring records: a day and a half."""

MAX_BLOCK_BYTES = 1 << 20
"""No block that a search accepts is longer."""

NOTHING, UNDECIDED, RECORD, FILE = range(4)
"""What begins at a byte: nothing; more bytes are needed to tell; a record or block; a file."""

FILE_HEADER_BYTES = 24
SECTION_MAGIC = 0x0A0D0D0A

_ORDER_MAGIC, _ORDER_MAGIC_SWAPPED = 0x1A2B3C4D, 0x4D3C2B1A
_BIG_MAGICS = (0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34)
_LITTLE_MAGICS = (0xD4C3B2A1, 0x4D3CB2A1, 0x34CDB2A1)
_MAX_KNOWN_BLOCK = 11
_SECTION_BYTES, _BLOCK_BYTES, _ENHANCED, _ENHANCED_BYTES = 28, 12, 6, 32


@device_function
def begins_file(data: U8, at: int, is_at_end: int) -> int:
    """
    Return whether the header of a pcap file or of a section of pcapng begins here: FILE or NOTHING.

    `UNDECIDED`: the bytes so far fit.
    """
    if at + 4 > len(data):
        return NOTHING if is_at_end else UNDECIDED
    magic = u32(data, at)
    if magic != SECTION_MAGIC and magic not in _BIG_MAGICS and magic not in _LITTLE_MAGICS:
        return NOTHING
    if at + FILE_HEADER_BYTES > len(data):
        return NOTHING if is_at_end else UNDECIDED
    if magic == SECTION_MAGIC:
        order = u32(data, at + 8)
        if order not in (_ORDER_MAGIC, _ORDER_MAGIC_SWAPPED):
            return NOTHING
        length = u32_of(data, at + 4, int(order == _ORDER_MAGIC))
        return FILE if _SECTION_BYTES <= length <= MAX_BLOCK_BYTES else NOTHING
    big = int(magic in _BIG_MAGICS)
    major = u16(data, at + 4) if big else int(data[at + 4]) + int(data[at + 5]) * 0x100
    minor = u16(data, at + 6) if big else int(data[at + 6]) + int(data[at + 7]) * 0x100
    return FILE if major == 2 and minor <= 4 else NOTHING


@device_function
def _begins_record(data: U8, begin: int, form: RecordForm, chain: int, is_at_end: int) -> int:
    """Return whether a chain of record headers begins here; one up to the end may be shorter."""
    at = begin
    headers = 0
    seconds = 0
    big, record_bytes = form.is_big, form.record_bytes
    while headers < chain:
        if headers > 0 and begins_file(data, at, 1) == FILE:
            return RECORD
        if at + record_bytes > len(data):
            if is_at_end:
                return RECORD if headers > 0 and at == len(data) else NOTHING
            return UNDECIDED
        captured = u32_of(data, at + 8, big)
        original = u32_of(data, at + 12, big)
        now = u32_of(data, at, big)
        apart = now - seconds if now > seconds else seconds - now
        if (
            captured == 0
            or captured > form.longest
            or captured > original
            or original > MAX_PACKET_BYTES
            or u32_of(data, at + 4, big) >= form.units_per_s
            or (headers > 0 and apart > MAX_APART_S)
        ):
            return NOTHING
        seconds = now
        headers += 1
        at += record_bytes + captured
    return RECORD


@device_function
def _begins_block(data: U8, at: int, big: int, is_at_end: int) -> int:
    """Return whether a block of a known type, with two equal lengths, begins here."""
    if at + _BLOCK_BYTES > len(data):
        return NOTHING if is_at_end else UNDECIDED
    kind, length = u32_of(data, at, big), u32_of(data, at + 4, big)
    if kind == 0 or kind > _MAX_KNOWN_BLOCK or length % 4 or length > MAX_BLOCK_BYTES:
        return NOTHING
    if length < (_ENHANCED_BYTES if kind == _ENHANCED else _BLOCK_BYTES):
        return NOTHING
    if at + length > len(data):
        return NOTHING if is_at_end else UNDECIDED
    return RECORD if u32_of(data, at + length - 4, big) == length else NOTHING


@Kernel
def find_start(data: U8, begin: int, form: RecordForm, chain: int, is_at_end: int) -> int:
    """
    Find the first record, block or file header from `begin` on.

    Each byte costs at most a chain, so the search is linear; the bytes before the result need not
    be searched again.

    Args:
        data: The bytes.
        begin: Where the search begins.
        form: The form of records.
        chain: Number of record headers required in pcap.
        is_at_end: Whether the file ends with `data`.

    Returns:
        4 times its offset, plus what begins there; the end of `data` with `NOTHING`.
    """
    for at in range(begin, len(data)):
        what = begins_file(data, at, is_at_end)
        if what == NOTHING:
            if form.is_pcapng:
                what = _begins_block(data, at, form.is_big, is_at_end)
            else:
                what = _begins_record(data, at, form, chain, is_at_end)
        if what != NOTHING:
            return at * 4 + what
    return len(data) * 4 + NOTHING


@device_function
def is_next_record(data: U8, at: int, form: RecordForm) -> bool:
    """Return whether a record header may be one, as a check of the length before it."""
    if begins_file(data, at, 1) == FILE:
        return True
    if at + form.record_bytes > len(data):
        return False
    seconds, units = u32_of(data, at, form.is_big), u32_of(data, at + 4, form.is_big)
    captured, original = u32_of(data, at + 8, form.is_big), u32_of(data, at + 12, form.is_big)
    is_zero = seconds == 0 and units == 0 and captured == 0 and original == 0
    return captured <= MAX_RECORD_BYTES and units < form.units_per_s and not is_zero
