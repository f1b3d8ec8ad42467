"""The pseudonyms of one redaction, by the kind of original."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import ip_address
from uuid import UUID

from dissector.capture.addresses import IPV4_MAPPED
from dissector.redaction.pseudonyms.hosts import (
    address_pseudonym,
    ipv4_pseudonym,
    ipv6_pseudonym,
    is_address,
)
from dissector.redaction.pseudonyms.kafka_words import (
    RESOURCE_NAMES,
    SOFTWARE_NAMES,
    WORDS,
    is_version,
)
from dissector.redaction.pseudonyms.permutation import Permutation
from dissector.redaction.pseudonyms.texts import text_pseudonym

_KEPT = RESOURCE_NAMES | SOFTWARE_NAMES | {"", "*", "localhost"}
_RESERVED_IDS = 100
"""Topic and directory ids below are Kafka's own. Source: Uuid.java, DirectoryId.java."""
_MARK = "redacted-"
_MARK_BYTES = 8
_FILLER = b"x"
_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567"
_LETTERS = _BASE32 * 8
"""A letter for each byte, by its low five bits."""
_CACHED = 1 << 16
_CONTENT = "content"


class Pseudonyms:
    """
    One to one replacements of the same length.

    A name has one pseudonym everywhere, so that a group is found again as a coordinator's key and
    in an ACL.
    """

    def __init__(self, key: bytes) -> None:
        self._permutation = Permutation(key)
        self._replaced: dict[str, str] = {}
        cached = lru_cache(_CACHED)
        self.name: Callable[[str], str] = cached(self._name)
        self.raw_address: Callable[[bytes], bytes] = cached(self._raw_address)
        self.producer_id: Callable[[int], int] = cached(self._producer_id)

    def replaced(self) -> Iterator[tuple[str, str]]:
        """Yield the names, hosts and ids that were replaced, each with its pseudonym."""
        yield from sorted(self._replaced.items())

    def _name(self, text: str) -> str:
        if text in _KEPT:
            return text
        found = address_pseudonym(self._permutation, text)
        return self._note(text, found or text_pseudonym(self._permutation, text, _is_taken))

    def text(self, text: str) -> str:
        """Return the pseudonym of a text that names nothing, of as many bytes."""
        return text_pseudonym(self._permutation, text, lambda _: False) if text else text

    def word(self, text: str) -> str:
        """Return the pseudonym of a text that usually is one of Kafka's words: these stay."""
        return text if text in WORDS else self.name(text)

    def software(self, text: str) -> str:
        """Return the pseudonym of a program or of its version."""
        return text if is_version(text) else self.name(text)

    def host(self, text: str) -> str:
        """Return the pseudonym of a host, also where a slash is before it."""
        return "/" + self.name(text[1:]) if text.startswith("/") else self.name(text)

    def address(self, high: int, low: int) -> tuple[int, int]:
        """Return the pseudonym of an address, both as in `Segments`."""
        if high == 0 and low >> 32 == IPV4_MAPPED >> 32:
            new = self.raw_address((low & 0xFFFFFFFF).to_bytes(4, "big"))
            return 0, IPV4_MAPPED | int.from_bytes(new, "big")
        value = int.from_bytes(self.raw_address((high << 64 | low).to_bytes(16, "big")), "big")
        return value >> 64, value & ((1 << 64) - 1)

    def _raw_address(self, data: bytes) -> bytes:
        """Return the pseudonym of 4 or 16 bytes of an address; others become zeros."""
        if len(data) == 4:
            number = ipv4_pseudonym(self._permutation, int.from_bytes(data, "big"))
        elif len(data) == 16:
            number = ipv6_pseudonym(self._permutation, int.from_bytes(data, "big"))
        else:
            return bytes(len(data))
        new = number.to_bytes(len(data), "big")
        self._note(str(ip_address(data)), str(ip_address(new)))
        return new

    def mac(self, data: bytes) -> bytes:
        """Return the pseudonym of a MAC address, local and unicast; none stays none."""
        if len(set(data)) <= 1 and data[:1] in (b"\0", b"\xff", b""):
            return data
        group = data[0] & 1
        mixed = self._permutation.digest("mac", data, len(data))
        return bytes((mixed[0] & 0xFC | 2 | group,)) + mixed[1:]

    def uuid(self, data: bytes) -> bytes:
        """Return the pseudonym of the 16 bytes of an id; Kafka's own ids stay."""
        number = int.from_bytes(data, "big")
        if number < _RESERVED_IDS:
            return data
        found = self._permutation.permute(
            "uuid", number, 1 << 128, lambda each: each >= _RESERVED_IDS
        )
        self._note(str(UUID(int=number)), str(UUID(int=found)))
        return found.to_bytes(16, "big")

    def base64_id(self, text: str) -> str:
        """Return the pseudonym of an id as Kafka writes ids: 22 characters of base64."""
        data = base64.urlsafe_b64decode(text + "==")
        return base64.urlsafe_b64encode(self.uuid(data)).decode().rstrip("=")

    def _producer_id(self, number: int) -> int:
        """Return the pseudonym of a producer id; a negative one means none."""
        if number < 0:
            return number
        return self._permutation.permute("producer id", number, 1 << 63)

    def content(self, data: bytes, mark_bytes: int = _MARK_BYTES) -> bytes:
        """Return a keyed mark of the whole content, and filler: the same for the same content."""
        mark = self._permutation.digest(_CONTENT, data, min(mark_bytes, len(data)))
        letters = mark.translate(_LETTERS)
        return letters + _FILLER * (len(data) - len(letters))

    @property
    def content_head(self) -> bytes:
        """The keyed bytes before a content, whose SHAKE-256 is its mark."""
        return self._permutation.head(_CONTENT)

    def noise(self, data: bytes) -> bytes:
        """Return keyed bytes that depend on the whole content."""
        return self._permutation.digest("noise", data, len(data))

    def letters(self, text: str) -> str:
        """Return keyed letters and digits for a text of ASCII."""
        mixed = self.noise(text.encode("utf-8", "surrogateescape"))
        return "".join(chr(_BASE32[byte & 31]) for byte in mixed)

    def regex(self, text: str) -> str:
        """Return a regular expression that is recognisably not the capture's."""
        size = len(text.encode("utf-8", "surrogateescape"))
        return (_MARK * (size // len(_MARK) + 1))[:size]

    def principal(self, text: str) -> str:
        """Return the pseudonym of a principal; its type stays where it is a word: `User:x`."""
        kind, colon, name = text.partition(":")
        if not colon or re.fullmatch(r"[A-Za-z]{1,16}", kind) is None or name in ("*", ""):
            return text if name == "*" and colon and kind == "User" else self.name(text)
        return f"{self.word(kind)}:{self.name(name)}"

    def _note(self, text: str, pseudonym: str) -> str:
        if text != pseudonym:
            self._replaced[text] = pseudonym
        return pseudonym


def _is_taken(text: str) -> bool:
    """Return whether a text can't be the pseudonym of another one: it stays, or is an address."""
    return text in _KEPT or is_address(text)
