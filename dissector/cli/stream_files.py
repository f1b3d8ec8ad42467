"""The bytes of each stream as files, secrets blanked."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.reader import PLAINTEXT_BEGINS
from dissector.file_roles import open_output
from dissector.protocol.embedded.masking import secret_ranges
from dissector.protocol.messages import Message

MAX_OPEN_FILES = 100
SIZE_BYTES = 4
BLANK = b"*"
BLANK_CHUNK_BYTES = 1 << 16
"""Maximum number of bytes per write."""


class StreamFiles:
    """
    Writes `CONNECTION-a.bin` and `CONNECTION-b.bin`: the bytes that each side of a connection sent.

    Gaps are left out, so an offset in a file is the offset in the stream minus the gaps before it.
    Secrets are blanked at the end, because a frame is decoded only after its bytes were written. On
    Kafka connections the bytes outside of frames are blanked too, such as the rest of a message
    after a gap; all are on connections to a broker that were not recognised. Leaving the context
    without `close` removes the files.
    """

    def __init__(self, folder: Path, show_secrets: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._show_secrets = show_secrets
        self._open_files: OrderedDict[tuple[int, int], BinaryIO] = OrderedDict()
        self._created: set[tuple[int, int]] = set()
        self._sizes: dict[tuple[int, int], int] = {}
        # For each gap: its offset, its length, and the bytes missing before it.
        self._gaps: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        self._secret_ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._frame_ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._closed = False

    def __enter__(self) -> StreamFiles:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._closed:
            self.close(keep=set())

    def write(self, connection: int, side: int, data: bytes | None, length: int) -> None:
        """Write the next bytes of a stream; see `Tap`."""
        if length == PLAINTEXT_BEGINS:
            self._drop(connection)
            return
        key = connection, side
        if data is None:
            gaps = self._gaps.setdefault(key, [])
            missing = gaps[-1][1] + gaps[-1][2] if gaps else 0
            gaps.append((self._sizes.get(key, 0), length, missing))
        elif data:
            self._file(key).write(data)
        self._sizes[key] = self._sizes.get(key, 0) + length

    def _drop(self, connection: int) -> None:
        """Delete the files of a connection."""
        for key in ((connection, 0), (connection, 1)):
            self._sizes.pop(key, None)
            self._gaps.pop(key, None)
            if (file := self._open_files.pop(key, None)) is not None:
                file.close()
            if key in self._created:
                self._created.discard(key)
                self._path(key).unlink()

    def add_secrets(self, exchange: Exchange) -> None:
        """Record the ranges of the secrets in an exchange."""
        if self._show_secrets:
            return
        for side in range(2):
            self._frame_ranges.setdefault((exchange.connection, side), [])
        for message in exchange.messages:
            offset, side = exchange.place_of(message.kind)
            key = exchange.connection, side
            begin = offset + SIZE_BYTES
            _append_range(self._frame_ranges[key], offset, begin + len(message.frame))
            for start, end in _frame_secrets(exchange, message):
                self._secret_ranges.setdefault(key, []).append((begin + start, begin + end))

    def close(self, keep: set[int], unread: Collection[int] = ()) -> None:
        """
        Close the files, remove those of excluded connections, and blank the secrets.

        Args:
            keep: The chosen connections.
            unread: Connections whose protocol was not recognised, and may be Kafka: they are
                blanked whole.
        """
        for file in self._open_files.values():
            file.close()
        self._open_files.clear()
        for key in [key for key in self._created if key[0] not in keep]:
            self._created.discard(key)
            self._path(key).unlink()
        for key, framed in self._frame_ranges.items():
            if key in self._created:
                outside = _complement(framed, self._sizes[key])
                self._blank(key, [*self._secret_ranges.get(key, ()), *outside])
        for key in self._created if not self._show_secrets else ():
            if key[0] in unread:
                self._blank(key, [(0, self._sizes[key])])
        self._closed = True

    def _blank(self, key: tuple[int, int], ranges: list[tuple[int, int]]) -> None:
        """Overwrite ranges of a stream in its file."""
        with self._path(key).open("r+b") as file:
            size = file.seek(0, 2)
            for start, end in ranges:
                first, last = self._file_offset(key, start), min(self._file_offset(key, end), size)
                file.seek(first)
                for at in range(first, last, BLANK_CHUNK_BYTES):
                    file.write(BLANK * min(BLANK_CHUNK_BYTES, last - at))

    def _file_offset(self, key: tuple[int, int], offset: int) -> int:
        """Return the offset in the file of a byte of the stream."""
        gaps = self._gaps.get(key)
        number = bisect_left(gaps, (offset, 0, 0)) if gaps else 0
        if not gaps or number == 0:
            return offset
        at, length, missing = gaps[number - 1]
        return offset - missing - min(length, offset - at)

    def _path(self, key: tuple[int, int]) -> Path:
        return self._folder / f"{key[0]}-{'ab'[key[1]]}.bin"

    def _file(self, key: tuple[int, int]) -> BinaryIO:
        """Return the open file of a stream; the least recently used one may be closed for it."""
        file = self._open_files.pop(key, None)
        if file is None:
            if len(self._open_files) >= MAX_OPEN_FILES:
                self._open_files.popitem(last=False)[1].close()
            file = open_output(self._path(key), "ab" if key in self._created else "wb")
            self._created.add(key)
        self._open_files[key] = file
        return file


def _frame_secrets(exchange: Exchange, message: Message) -> list[tuple[int, int]]:
    """Return the secret ranges of a frame."""
    if exchange.is_token:
        return [(0, len(message.frame))]
    return secret_ranges(message, exchange.request if message.kind == "response" else None)


def _append_range(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    """Append a range; merge it with the last one if they are adjacent."""
    if ranges and ranges[-1][1] == start:
        ranges[-1] = ranges[-1][0], end
    else:
        ranges.append((start, end))


def _complement(ranges: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Return the parts of [0, size) outside of all ranges."""
    out, at = [], 0
    for start, end in sorted(ranges):
        if start > at:
            out.append((at, start))
        at = max(at, end)
    return [*out, (at, size)] if at < size else out
