"""
Secrets that a login shows are secret wherever the same connection repeats them, as in error texts.

A short password may be an ordinary word, so it is found only where it stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Protocol

MIN_BYTES = 4
"""Shorter secrets are not searched: they would be found nearly everywhere."""

_WORD_BYTES = 8
"""Shorter secrets are found only as whole words."""

_MAX_BYTES = 256
"""Of longer secrets the beginning is searched."""

SIGN_BITS = 20
"""A sign of a secret is a hash of its first `MIN_BYTES` bytes, of so many bits."""

SIGN_FACTOR = 0x9E3779B1
"""Multiplies these bytes; the sign is the highest bits of the lower 32."""

WORD = 0xFFFFFFFF
SIGN_SHIFT = 32 - SIGN_BITS

MAX_SECRETS = 16
"""Secrets of a connection; the newest are kept. A login has three at most."""


class Known(Protocol):
    """Secrets to search."""

    def holds(self, data: bytes) -> bool:
        """Return whether text or bytes repeat one of the secrets."""


class KnownSecrets:
    """
    The secrets that the logins on one connection showed.

    Attributes:
        secrets: The secrets.
    """

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        unique = dict.fromkeys(each[:_MAX_BYTES] for each in secrets if len(each) >= MIN_BYTES)
        self.secrets = tuple(unique)[-MAX_SECRETS:]

    def holds(self, data: bytes) -> bool:
        """Return whether text or bytes repeat one of the secrets."""
        return self._pattern.search(data) is not None

    def forms(self) -> Iterator[bytes]:
        """Yield the secrets as they appear: as they are, in JSON, in a URL."""
        from urllib.parse import quote_from_bytes  # few captures need it

        for each in self.secrets:
            escaped = each.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            yield from {each, escaped, quote_from_bytes(each, safe="").encode()}

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(_as_pattern(each) for each in self.forms()) or b"(?!)")


def _as_pattern(secret: bytes) -> bytes:
    found = re.escape(secret)
    return found if len(secret) >= _WORD_BYTES else rb"(?<![\w.-])" + found + rb"(?![\w-])"


class SecretsOfAll:
    """The secrets of many connections, for texts about several of them."""

    def __init__(self, secrets: Iterable[KnownSecrets]) -> None:
        self._by_begin: dict[bytes, set[bytes]] = {}
        for each in secrets:
            for form in each.forms():
                self._by_begin.setdefault(form[:MIN_BYTES], set()).add(form)

    def holds(self, data: bytes) -> bool:
        """Return whether text or bytes repeat one of the secrets."""
        if not self._by_begin:
            return False
        begins = {data[at : at + MIN_BYTES] for at in range(len(data) - MIN_BYTES + 1)}
        return any(
            form in data and re.search(_as_pattern(form), data)
            for begin in begins & self._by_begin.keys()
            for form in self._by_begin[begin]
        )


def sign_of(secret: bytes) -> int:
    """Return the sign of a secret; `may_hold_credential` computes those of any bytes."""
    return (int.from_bytes(secret[:MIN_BYTES], "big") * SIGN_FACTOR & WORD) >> SIGN_SHIFT


NOTHING_KNOWN = KnownSecrets()

_known: ContextVar[Known] = ContextVar("known_secrets", default=NOTHING_KNOWN)


@contextmanager
def knowing(secrets: Known) -> Iterator[None]:
    """Take the secrets of a connection for credentials in a `with`; not around a `yield`."""
    before = _known.set(secrets)
    try:
        yield
    finally:
        _known.reset(before)


def repeats_login_secret(data: bytes) -> bool:
    """Return whether text or bytes repeat a secret of the connection that is being shown."""
    known = _known.get()
    return known is not NOTHING_KNOWN and known.holds(data)
