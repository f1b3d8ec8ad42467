"""The bytes of each stream as files, secrets blanked."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO

from dissector.engine.exchange import Exchange
from dissector.protocol.embedded.secrets import secret_ranges
from dissector.protocol.messages import Message

MAX_OPEN_FILES = 100
SIZE_BYTES = 4
BLANK = b"*"


class StreamFiles:
    """
    Writes `CONNECTION-a.bin` and `CONNECTION-b.bin`: what each side of a connection sent.

    Gaps are left out, so a place in a file is a place in the stream less the gaps before it.
    Secrets are blanked when all is written, because a frame is known only after its bytes. A
    context that is left before `close` takes its files away, because nobody knows then what in
    them is secret.
    """

    def __init__(self, folder: Path, show_secrets: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._show_secrets = show_secrets
        self._open: OrderedDict[tuple[int, int], BinaryIO] = OrderedDict()
        self._known: set[tuple[int, int]] = set()
        self._sizes: dict[tuple[int, int], int] = {}
        self._gaps: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._hidden: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._closed = False

    def __enter__(self) -> StreamFiles:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._closed:
            self.close(keep=set())

    def take(self, connection: int, side: int, data: bytes | None, length: int) -> None:
        """Write the next bytes of a stream; None is a gap."""
        key = connection, side
        if data is None:
            self._gaps.setdefault(key, []).append((self._sizes.get(key, 0), length))
        elif data:
            self._file(key).write(data)
        self._sizes[key] = self._sizes.get(key, 0) + length

    def hide(self, exchange: Exchange) -> None:
        """Take note of the secrets in an exchange."""
        if self._show_secrets:
            return
        for message in exchange.messages:
            offset, side = exchange.place_of(message)
            for start, end in _secret(exchange, message):
                begin = offset + SIZE_BYTES
                hidden = self._hidden.setdefault((exchange.connection, side), [])
                hidden.append((begin + start, begin + end))

    def close(self, keep: set[int]) -> None:
        """Close the files, take away those of other connections, and blank the secrets."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        for key in [key for key in self._known if key[0] not in keep]:
            self._known.discard(key)
            self._path(key).unlink()
        for key, ranges in self._hidden.items():
            if key in self._known:
                self._blank(key, ranges)
        self._closed = True

    def _blank(self, key: tuple[int, int], ranges: list[tuple[int, int]]) -> None:
        """Write over ranges of a stream in its file."""
        with self._path(key).open("r+b") as file:
            size = file.seek(0, 2)
            for start, end in ranges:
                first, last = self._place(key, start), min(self._place(key, end), size)
                file.seek(first)
                file.write(BLANK * max(0, last - first))

    def _place(self, key: tuple[int, int], offset: int) -> int:
        """Return where a byte of the stream lies in the file."""
        missing = 0
        for at, length in self._gaps.get(key, ()):
            if at < offset:
                missing += min(length, offset - at)
        return offset - missing

    def _path(self, key: tuple[int, int]) -> Path:
        return self._folder / f"{key[0]}-{'ab'[key[1]]}.bin"

    def _file(self, key: tuple[int, int]) -> BinaryIO:
        """Return the open file of a stream; only so many are open at a time."""
        file = self._open.pop(key, None)
        if file is None:
            if len(self._open) >= MAX_OPEN_FILES:
                self._open.popitem(last=False)[1].close()
            file = self._path(key).open("ab" if key in self._known else "wb")
            self._known.add(key)
        self._open[key] = file
        return file


def _secret(exchange: Exchange, message: Message) -> list[tuple[int, int]]:
    """Return the secret ranges of a frame."""
    if exchange.is_token:
        return [(0, len(message.frame))]
    return secret_ranges(message, exchange.request if message.kind == "response" else None)
