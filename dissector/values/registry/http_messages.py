"""
A reader of HTTP/1.1: the messages in the ordered bytes of one direction.

Bounded: a message has at most `MAX_BODY` bytes, and its head `MAX_HEAD`.

Source: RFC 9112
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

MAX_HEAD = 64 << 10
MAX_BODY = 16 << 20

_END_OF_HEAD = b"\r\n\r\n"
_BODILESS = ("204", "304")


class HttpMessage(NamedTuple):
    """
    A request or a response.

    Attributes:
        start: The three words of its first line.
        headers: By name in lower case.
        body: Its content, as it was transferred.
    """

    start: tuple[str, str, str]
    headers: Mapping[str, str]
    body: bytes


class NotHttp(Exception):
    """The bytes are not HTTP, or beyond the limits."""


class HttpStream:
    """
    The bytes of one direction.

    Attributes:
        held: Bytes that wait for the rest of their message.
    """

    def __init__(self) -> None:
        """Start."""
        self._waiting = bytearray()
        self._head: tuple[tuple[str, str, str], dict[str, str], int] | None = None
        self._searched = 0
        self._body_so_far = bytearray()

    @property
    def held(self) -> int:
        """Number of bytes that wait for the rest of their message."""
        return len(self._waiting) + len(self._body_so_far)

    def feed(self, content: bytes) -> Iterator[HttpMessage]:
        """
        Yield the messages that more bytes complete.

        Raises:
            NotHttp: They are no HTTP/1.1.
        """
        self._waiting += content
        while (message := self._next()) is not None:
            yield message

    def _next(self) -> HttpMessage | None:
        if self._head is None:
            end = self._waiting.find(_END_OF_HEAD, max(self._searched - 3, 0), MAX_HEAD)
            if end < 0:
                self._searched = len(self._waiting)
                if self._searched > MAX_HEAD:
                    raise NotHttp
                return None
            self._head = (*_head(bytes(self._waiting[:end])), end + len(_END_OF_HEAD))
            self._searched = 0
        start, headers, at = self._head
        found = self._body(start, headers, at)
        if found is None:
            if len(self._waiting) > MAX_HEAD + MAX_BODY:
                raise NotHttp
            return None
        body, end = found
        del self._waiting[:end]
        self._head, self._searched = None, 0
        self._body_so_far.clear()
        return HttpMessage(start, headers, body)

    def _body(
        self, start: tuple[str, str, str], headers: Mapping[str, str], at: int
    ) -> tuple[bytes, int] | None:
        """Return the body and where it ends; None if it has not ended."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunked(at)
        if start[0].startswith("HTTP/") and (start[1][:1] == "1" or start[1] in _BODILESS):
            return b"", at
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or len(length) > 9:
            raise NotHttp
        end = at + int(length)
        if end - at > MAX_BODY:
            raise NotHttp
        return (bytes(self._waiting[at:end]), end) if end <= len(self._waiting) else None

    def _chunked(self, at: int) -> tuple[bytes, int] | None:
        """Return a body in chunks, and where it ends; None if it has not ended."""
        waiting = self._waiting
        at = self._searched or at
        while True:
            self._searched = at
            end = waiting.find(b"\r\n", at, at + _MAX_CHUNK_LINE)
            if end < 0:
                if len(waiting) - at > _MAX_CHUNK_LINE:
                    raise NotHttp
                return None
            size = _chunk_size(bytes(waiting[at:end]))
            at = end + 2
            if size == 0:
                end = waiting.find(b"\r\n", at, at + MAX_HEAD)
                return None if end < 0 else (bytes(self._body_so_far), end + 2)
            if len(waiting) < at + size + 2:
                return None
            self._body_so_far += waiting[at : at + size]
            at += size + 2


_MAX_CHUNK_LINE = 100


def _chunk_size(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    try:
        size = int(text, 16) if len(text) < 9 else -1
    except ValueError:
        size = -1
    if not 0 <= size <= MAX_BODY:
        raise NotHttp
    return size


def _head(head: bytes) -> tuple[tuple[str, str, str], dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) != 3 or not (words[0].startswith("HTTP/1.") or words[2].startswith("HTTP/1.")):
        raise NotHttp
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return (words[0], words[1], words[2]), headers
