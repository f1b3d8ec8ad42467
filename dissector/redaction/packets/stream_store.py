"""The replaced bytes of streams, in a temporary file, by connection, side and place."""

from __future__ import annotations

import tempfile
from mmap import ACCESS_READ, mmap
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.redaction.packets.packet_kernels import RangeArrays, read_ranges

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

_COLUMNS = 4
"""Stream, begin in the stream, place in the file, bytes."""


class StreamStore:
    """
    Ranges of the streams of connections; bytes outside of all of them are zero.

    The file holds only bytes of the output, and no name of the capture.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._end = 0
        self._added: list[Ints] = []
        self._ranges: Ints = np.zeros((_COLUMNS, 0), np.int64)
        self._first: Ints = np.zeros(1, np.int64)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def put(self, connection: int, side: int, offset: int, data: bytes) -> None:
        """Add a range; ranges of a stream may come in any order, and do not overlap."""
        columns = np.array([[connection], [side], [offset], [0], [len(data)]])
        self.put_all(columns, np.frombuffer(data, np.uint8))

    def put_all(self, columns: Ints, data: Bytes) -> None:
        """
        Add ranges.

        Args:
            columns: Connection, side, offset in the stream, place in `data`, and size of each.
            data: Their bytes; ranges that follow each other in a stream, and here too, are kept
                as one.
        """
        connection, side, offset, place, size = columns
        ranges = np.stack((connection << 1 | side, offset, self._end + place, size))
        self._added.append(_joined(ranges[:, np.argsort(place, kind="stable")]))
        self._file.seek(self._end)
        self._file.write(data.data)
        self._end += len(data)

    def get(self, connection: int, side: int, offset: int, length: int) -> bytes:
        """Return bytes of a stream."""
        out = bytearray(length)
        self._sort()
        stream, begins, places, sizes = self._ranges
        number = connection << 1 | side
        first, last = (int(np.searchsorted(stream, number, end)) for end in ("left", "right"))
        at = max(first + int(np.searchsorted(begins[first:last], offset, "right")) - 1, first)
        while at < last and begins[at] < offset + length:
            begin, place, size = int(begins[at]), int(places[at]), int(sizes[at])
            start, end = max(begin, offset), min(begin + size, offset + length)
            if start < end:
                self._file.seek(place + start - begin)
                out[start - offset : end - offset] = self._file.read(end - start)
            at += 1
        return bytes(out)

    def get_all(self, parts: Ints, out: Bytes) -> None:
        """
        Write parts of streams.

        Args:
            parts: Of each `2 * connection + side`, negative for none; where it begins; its bytes;
                and where it goes in `out`: what is outside of all ranges stays there.
            out: Gets them.
        """
        self._sort()
        if not self._end:
            return
        self._file.flush()
        with mmap(self._file.fileno(), self._end, access=ACCESS_READ) as memory:
            source = np.frombuffer(memory, np.uint8)
            read_ranges(
                source,
                RangeArrays._make((*np.ascontiguousarray(parts), self._first, *self._ranges[1:])),
                out,
            )
            del source

    def _sort(self) -> None:
        """Order the ranges by stream and begin."""
        if self._added:
            ranges = np.concatenate((self._ranges, *self._added), axis=1)
            self._ranges = np.ascontiguousarray(ranges[:, np.lexsort((ranges[1], ranges[0]))])
            streams = self._ranges[0]
            self._first = np.searchsorted(streams, np.arange(int(streams[-1]) + 2))
            self._added = []


def _joined(ranges: Ints) -> Ints:
    """Return ranges, in the order of their places, with runs of a stream as one each."""
    if ranges.shape[1] < 2:
        return ranges
    stream, begin, place, size = ranges
    is_next = (stream[1:] == stream[:-1]) & (begin[1:] == begin[:-1] + size[:-1])
    is_next &= place[1:] == place[:-1] + size[:-1]
    first = np.flatnonzero(np.append(True, ~is_next))
    joined = ranges[:, first]
    joined[-1] = np.add.reduceat(size, first)
    return joined
