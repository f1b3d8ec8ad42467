"""Reading the same field out of many packets at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dissector.capture.addresses import MAPPED
from dissector.capture.columns import Bytes, Int64s, UInt64s


@dataclass(slots=True)
class Located:
    """
    Where in each of some packets a header starts.

    Attributes:
        row: Index of the packet in its window.
        at: Offset of the header in the window's data.
        end: Offset behind the last captured byte that belongs to it.
        sent_end: Offset behind the last byte that was sent; at or behind `end`.
    """

    row: Int64s
    at: Int64s
    end: Int64s
    sent_end: Int64s

    def __len__(self) -> int:
        return len(self.row)

    def where(self, chosen: NDArray[np.bool_]) -> Located:
        """Return those packets for which `chosen` is true."""
        return Located(self.row[chosen], self.at[chosen], self.end[chosen], self.sent_end[chosen])

    def has(self, size: int) -> NDArray[np.bool_]:
        """Return for each whether `size` bytes of the header were captured."""
        return self.at + size <= self.end


def u8(data: Bytes, at: Int64s) -> Int64s:
    """Return the byte at each offset."""
    return data[at].astype(np.int64)


def u16(data: Bytes, at: Int64s) -> Int64s:
    """Return the two bytes at each offset, highest first."""
    return u8(data, at) << 8 | data[at + 1]


def u32(data: Bytes, at: Int64s) -> Int64s:
    """Return the four bytes at each offset, highest first."""
    return u16(data, at) << 16 | u16(data, at + 2)


def ipv4_addresses(data: Bytes, at: Int64s) -> UInt64s:
    """Return [n, 2]: the IPv4 addresses at the offsets as `::ffff:a.b.c.d`."""
    addresses = np.zeros((len(at), 2), dtype=np.uint64)
    addresses[:, 1] = u32(data, at).astype(np.uint64) | np.uint64(MAPPED)
    return addresses


def ipv6_addresses(data: Bytes, at: Int64s) -> UInt64s:
    """Return [n, 2]: the IPv6 addresses at the offsets."""
    taken = np.ascontiguousarray(data[at[:, None] + np.arange(16)])
    return taken.view(">u8").astype(np.uint64).reshape(-1, 2)
