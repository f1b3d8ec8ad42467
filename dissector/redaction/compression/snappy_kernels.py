"""
Sequences as snappy writes them.

Source: snappy's format_description.txt.
"""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.memcpy import copy_bytes
from dissector.redaction.compression.sequence_arrays import MIN_MATCH, Sequences

_LONGEST_COPY = 64
_NEAR, _SHORT = 2048, 11
_SHORTEST_LITERAL, _MOST_LENGTH_BYTES = 60, 4


@device_function
def snappy_cost(literals: int, match: int, offset: int) -> int:
    """Return the encoded size of a sequence."""
    cost = 0
    if literals > 0:
        cost += literals + 1 + _length_bytes(literals)
    while match > 0:
        length = _copied(match)
        cost += _copy_cost(length, offset)
        match -= length
    return cost


@device_function
def _length_bytes(literals: int) -> int:
    """Return the number of bytes of a literal's length after the tag."""
    if literals <= _SHORTEST_LITERAL:
        return 0
    if literals <= 1 << 8:
        return 1
    return 2 if literals <= 1 << 16 else 3


@device_function
def _copied(match: int) -> int:
    """Return the length of the first copy of a match: at least 4 bytes are left, or none."""
    if match <= _LONGEST_COPY:
        return match
    return _LONGEST_COPY if match >= _LONGEST_COPY + MIN_MATCH else _LONGEST_COPY - MIN_MATCH


@device_function
def _copy_cost(length: int, offset: int) -> int:
    return 2 if length >= MIN_MATCH and length <= _SHORT and offset < _NEAR else 3


@device_function
def write_snappy(raw: U8, found: Sequences, count: int, missing: int, out: U8) -> int:
    """
    Write a block; lengths of literals are longer than necessary where bytes are missing.

    Returns:
        The number of bytes that are still missing; negative if the bytes or the room are not enough
        for the sequences.
    """
    at, begin = 0, 0
    for each in range(count):
        literals, match = found.literals[each], found.match[each]
        offset = found.offset[each]
        more = 0
        if literals > 0:
            more = min(missing, _MOST_LENGTH_BYTES - _length_bytes(literals))
        is_inside = begin + literals <= len(raw)
        if not is_inside or at + more + snappy_cost(literals, match, offset) > len(out):
            return -1
        missing -= more
        if literals > 0:
            at = _write_literal_tag(literals, _length_bytes(literals) + more, at, out)
            copy_bytes(out, at, raw, begin, literals)
            at += literals
        begin += literals + match
        while match > 0:
            length = _copied(match)
            at = _write_copy(length, offset, at, out)
            match -= length
    return missing


@device_function
def _write_literal_tag(literals: int, length_bytes: int, at: int, out: U8) -> int:
    if length_bytes == 0:
        out[at] = literals - 1 << 2
        return at + 1
    out[at] = _SHORTEST_LITERAL - 1 + length_bytes << 2
    for place in range(length_bytes):
        out[at + 1 + place] = literals - 1 >> 8 * place & 255
    return at + 1 + length_bytes


@device_function
def _write_copy(length: int, offset: int, at: int, out: U8) -> int:
    if _copy_cost(length, offset) == 2:
        out[at] = (offset >> 8) << 5 | length - MIN_MATCH << 2 | 1
        out[at + 1] = offset & 255
        return at + 2
    out[at] = length - 1 << 2 | 2
    out[at + 1] = offset & 255
    out[at + 2] = offset >> 8 & 255
    return at + 3
