"""The replaced bytes of streams, in a temporary file, by connection, side and place."""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Iterator


class StreamStore:
    """
    Ranges of the streams of connections; bytes outside of all of them are zero.

    The file holds only bytes of the output, and no name of the capture.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._end = 0
        self._starts: dict[tuple[int, int], list[int]] = {}
        self._ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def put(self, connection: int, side: int, offset: int, data: bytes) -> None:
        """Add a range; ranges of a stream may come in any order, and do not overlap."""
        starts = self._starts.setdefault((connection, side), [])
        ranges = self._ranges.setdefault((connection, side), [])
        at = bisect_right(starts, offset)
        starts.insert(at, offset)
        ranges.insert(at, (self._end, len(data)))
        self._file.seek(self._end)
        self._file.write(data)
        self._end += len(data)

    def get(self, connection: int, side: int, offset: int, length: int) -> bytes:
        """Return bytes of a stream."""
        out = bytearray(length)
        for start, data in self._pieces((connection, side), offset, length):
            out[start : start + len(data)] = data
        return bytes(out)

    def _pieces(
        self, stream: tuple[int, int], offset: int, length: int
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the known pieces of a part of a stream, each with its place in the part."""
        starts, ranges = self._starts.get(stream, []), self._ranges.get(stream, [])
        for at in range(max(bisect_right(starts, offset) - 1, 0), len(starts)):
            begin, (place, size) = starts[at], ranges[at]
            if begin >= offset + length:
                return
            first, last = max(begin, offset), min(begin + size, offset + length)
            if first < last:
                self._file.seek(place + first - begin)
                yield first - offset, self._file.read(last - first)
