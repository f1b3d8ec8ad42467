"""
Sequences as lz4 writes them.

Source: lz4_Block_format.md.
"""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.memcpy import copy_bytes
from dissector.redaction.compression.sequence_arrays import MIN_MATCH, Sequences

_NIBBLE = 15
_FULL = 255


@device_function
def lz4_cost(literals: int, match: int) -> int:
    """Return the encoded size of a sequence."""
    cost = 1 + _extra(literals) + literals
    if match > 0:
        cost += 2 + _extra(match - MIN_MATCH)
    return cost


@device_function
def _extra(length: int) -> int:
    """Return the number of bytes after the half byte of a length."""
    return 0 if length < _NIBBLE else 1 + (length - _NIBBLE) // _FULL


@device_function
def write_lz4(raw: U8, found: Sequences, count: int, out: U8) -> bool:
    """Write a block; return whether the bytes and the room are enough for its sequences."""
    at, begin = 0, 0
    for each in range(count):
        literals, match = found.literals[each], found.match[each]
        is_inside = begin + literals <= len(raw)
        if not is_inside or at + lz4_cost(literals, match) > len(out):
            return False
        matched = match - MIN_MATCH if match > 0 else 0
        out[at] = min(literals, _NIBBLE) << 4 | min(matched, _NIBBLE)
        at = _write_length(literals, at + 1, out)
        copy_bytes(out, at, raw, begin, literals)
        at += literals
        if match > 0:
            out[at] = found.offset[each] & 255
            out[at + 1] = found.offset[each] >> 8 & 255
            at = _write_length(matched, at + 2, out)
        begin += literals + match
    return at == len(out)


@device_function
def _write_length(length: int, at: int, out: U8) -> int:
    """Write the bytes after the half byte of a length; return where they end."""
    if length < _NIBBLE:
        return at
    length -= _NIBBLE
    while length >= _FULL:
        out[at] = _FULL
        length -= _FULL
        at += 1
    out[at] = length
    return at + 1
