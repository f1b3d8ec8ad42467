"""
Protobuf messages, from Python values or from columns.

In columns a varint has a fixed width, padded by continuation bytes, which is legal. All rows of a
field thus have one size.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import Ints

Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

LENGTH_WIDTH = 4
"""Size of a length in columns, enough for 256 MiB."""

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
"""Wire types."""


def varint(value: int) -> bytes:
    """Return an integer in its shortest form."""
    value &= 2**64 - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def integer(field: int, value: int) -> bytes:
    """Return an integer field."""
    return varint(field << 3 | _VARINT) + varint(value)


def content(field: int, value: bytes | str) -> bytes:
    """Return a field of bytes, text, or a message."""
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    return varint(field << 3 | _LENGTH) + varint(len(value)) + value


class MessageColumns:
    """One message per row; fields are added to all rows, or to rows of a mask."""

    def __init__(self, rows: int) -> None:
        """Start with empty messages."""
        self._rows = rows
        self._parts: list[tuple[Bytes, Mask | None]] = []

    def add(self, encoded: bytes) -> None:
        """Add the same encoded fields to all rows."""
        self._append(np.broadcast_to(np.frombuffer(encoded, np.uint8), (self._rows, len(encoded))))

    def add_integers(
        self, field: int, values: Ints, mask: Mask | None = None, *, width: int = 10
    ) -> None:
        """Add an integer field; `width` is 10 for 64 bits, 5 for unsigned 32 bits."""
        tag = np.frombuffer(varint(field << 3 | _VARINT), np.uint8)
        tags = np.broadcast_to(tag, (self._rows, len(tag)))
        self._append(np.hstack((tags, _varints(values, width))), mask)

    def add_fixed(self, field: int, values: NDArray[np.uint64], mask: Mask) -> None:
        """Add an integer field of 8 bytes."""
        tag = np.frombuffer(varint(field << 3 | _FIXED64), np.uint8)
        tags = np.broadcast_to(tag, (self._rows, len(tag)))
        octets = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)
        self._append(np.hstack((tags, octets)), mask)

    def add_messages(self, field: int, messages: MessageColumns, mask: Mask | None = None) -> None:
        """Add a field that is a message."""
        tag = np.frombuffer(varint(field << 3 | _LENGTH), np.uint8)
        tags = np.broadcast_to(tag, (self._rows, len(tag)))
        self._append(np.hstack((tags, _varints(messages._sizes(), LENGTH_WIDTH))), mask)
        for part, own in messages._parts:
            self._append(part, own if mask is None else mask if own is None else own & mask)

    def encode(self) -> bytes:
        """Return the concatenated messages."""
        if not self._rows:
            return b""
        table = np.hstack([part for part, _ in self._parts])
        all_rows = np.ones(self._rows, np.bool_)
        masks = [(all_rows if mask is None else mask, part) for part, mask in self._parts]
        chosen = np.hstack([np.broadcast_to(mask[:, None], part.shape) for mask, part in masks])
        return table[chosen].tobytes()

    def _append(self, part: Bytes, mask: Mask | None = None) -> None:
        self._parts.append((part, mask))

    def _sizes(self) -> Ints:
        sizes = np.zeros(self._rows, np.int64)
        for part, mask in self._parts:
            sizes += part.shape[1] if mask is None else part.shape[1] * mask.astype(np.int64)
        return sizes


def _varints(values: Ints, width: int) -> Bytes:
    """Return integers as varints of one width."""
    shifts = (7 * np.arange(width)).astype(np.uint64)
    groups = values.astype(np.uint64)[:, None] >> shifts & np.uint64(0x7F)
    octets = groups.astype(np.uint8)
    octets[:, :-1] |= 0x80
    return octets
