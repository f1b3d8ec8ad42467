"""The plain packets of a window, replaced at once; see `packet_kernels`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Packets
from dissector.redaction.packets.packet_kernels import (
    BLOCK_BYTES,
    HEAD_BYTES,
    IP_AT,
    IPV4_BYTES,
    NOT_PLAIN,
    Blocks,
    PacketArrays,
    find_plain,
    write_blocks,
    write_checksums,
)
from dissector.redaction.packets.stream_store import StreamStore
from dissector.redaction.pseudonyms.distinct_contents import Places, replace_contents

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Replace: TypeAlias = Callable[[bytes], bytes]

_MAC_BYTES = 6
_NO_BYTES = np.zeros(0, np.uint8)


class PlainPackets:
    """
    The plain packets of a window.

    Attributes:
        is_plain: Of each packet of the window, whether it is one.
    """

    def __init__(self, packets: Packets) -> None:
        """Find them."""
        columns = packets.start, packets.captured, packets.original
        wide = [np.ascontiguousarray(each, np.int64) for each in columns]
        link = np.ascontiguousarray(packets.link, np.int32)
        times = np.ascontiguousarray(packets.time_ns, np.int64)
        found = (np.zeros(len(packets), np.int64) for _ in range(3))
        self._data = packets.data
        self._packets = PacketArrays._make((*wide, link, times, *found))
        find_plain(packets.data, self._packets)
        self.is_plain: NDArray[np.bool_] = np.asarray(self._packets.tcp_at) != NOT_PLAIN

    def blocks(
        self, payloads: PlainPayloads, store: StreamStore, replacements: Sequence[Replace]
    ) -> PlainBlocks | None:
        """
        Return the blocks of plain packets.

        Args:
            payloads: The packets.
            store: The replaced streams.
            replacements: The functions that replace MAC and IP addresses.

        Returns:
            None if not all addresses could be replaced, see `replace_contents`.
        """
        rows = payloads.row
        captured = np.asarray(self._packets.captured)[rows]
        size = BLOCK_BYTES + captured + (-captured & 3)
        at: Ints = np.cumsum(size) - size
        out = np.zeros(int(size.sum()), np.uint8)
        chosen = Blocks._make((np.ascontiguousarray(rows), at))
        write_blocks(self._data, self._packets, chosen, out)
        payload_at = np.asarray(self._packets.payload_at)[rows]
        length = np.asarray(self._packets.end)[rows] - payload_at
        parts = np.stack((payloads.stream, payloads.offset, length, at + HEAD_BYTES + payload_at))
        store.get_all(parts, out)
        if not self._replace_addresses(rows, at, out, replacements):
            return None
        write_checksums(self._packets, chosen, out)
        return PlainBlocks(payloads.number, at, out)

    def _replace_addresses(
        self, rows: Ints, at: Ints, out: Bytes, replacements: Sequence[Replace]
    ) -> bool:
        begin = at + HEAD_BYTES
        is_ipv4 = np.asarray(self._packets.tcp_at)[rows] == IP_AT + IPV4_BYTES
        size = np.where(is_ipv4, 4, 16)
        first = begin + IP_AT + np.where(is_ipv4, 12, 8)
        sixes = np.full(len(rows), _MAC_BYTES, np.int64)
        places = Places(
            np.concatenate((begin, begin + _MAC_BYTES, first, first + size)),
            np.concatenate((sixes, sixes, size, size)),
            np.repeat(np.array([0, 1]), 2 * len(rows)),
        )
        buffers = out, _NO_BYTES
        return bool(replace_contents(buffers, places, places.start, replacements, buffers).all())


class PlainPayloads(NamedTuple):
    """
    Plain packets, and where their payloads are.

    Attributes:
        number: Number of each one among those that are written.
        row: Its row in the window.
        stream: `2 * connection + side`; negative for none.
        offset: Where the payload begins in the stream.
    """

    number: Ints
    row: Ints
    stream: Ints
    offset: Ints


@dataclass(slots=True, eq=False, repr=False)
class PlainBlocks:
    """
    Blocks of packets.

    Attributes:
        number: Number of each one's packet, ascending.
        at: Where it begins.
        data: The blocks.
    """

    number: Ints
    at: Ints
    data: Bytes

    def between(self, first: int, last: int) -> tuple[Bytes, Ints]:
        """Return the blocks of some numbers, and where each begins."""
        begin, end = (int(each) for each in np.searchsorted(self.number, (first, last)))
        stop = int(self.at[end]) if end < len(self.at) else len(self.data)
        start = int(self.at[begin])
        return self.data[start:stop], self.at[begin:end] - start
