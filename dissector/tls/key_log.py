"""
Key logs: the secrets that TLS programs write for debugging.

Source: RFC 9850 (SSLKEYLOGFILE); NSS key log format for the lines `RSA` and `PMS_CLIENT_RANDOM`;
the Java agent extract-tls-secrets for `RSA Session-ID:... Master-Key:...`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dissector.errors import CaptureError

RANDOM_BYTES = 32
PREFIX_BYTES = 8
"""Bytes of an encrypted premaster secret in a line `RSA`."""

MASTER_LABEL = "CLIENT_RANDOM"
PREMASTER_LABEL = "PMS_CLIENT_RANDOM"

_LABELS = frozenset(
    (
        MASTER_LABEL,
        PREMASTER_LABEL,
        "CLIENT_EARLY_TRAFFIC_SECRET",
        "EARLY_EXPORTER_SECRET",
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
        "EXPORTER_SECRET",
        "ECH_SECRET",
        "ECH_CONFIG",
    )
)
_UNUSED = frozenset(("EARLY_EXPORTER_SECRET", "EXPORTER_SECRET", "ECH_SECRET", "ECH_CONFIG"))
_SESSION = re.compile(r"RSA Session-ID:([0-9A-Fa-f]{2,64}) Master-Key:([0-9A-Fa-f]{96})\Z")

_MAX_LINE_BYTES = 1 << 14
_MAX_SESSIONS = 1 << 16
"""Maximum number of sessions kept for their resumption."""

_READ_BYTES = 1 << 20

MAX_SEARCH_TRIALS = 24_000_000
"""About half a minute."""


class KeyLog:
    """
    Secrets by client random, session id and encrypted premaster secret.

    Neither its text form nor a pickle has any secret: a pickle has the names of the files, which
    are read again.

    Attributes:
        generation: Rises with each new line, so that a connection knows when to retry.
        lines: Lines with a secret that was not known before.
        skipped: Lines that are neither a comment nor known.
        follow: Whether lines may be added while the capture is read.
        search_trials: How many sequence numbers may still be tried in all connections without
            hellos, where each one costs.
    """

    def __init__(self, paths: Iterable[str | Path] = (), *, follow: bool = False) -> None:
        """
        Read key log files.

        Raises:
            CaptureError: A file can't be read, or has no lines.
        """
        self.follow = follow
        self.generation = self.lines = self.skipped = 0
        self.search_trials = MAX_SEARCH_TRIALS
        self._secrets: dict[bytes, dict[str, bytes]] = {}
        self._sessions: dict[bytes, bytes] = {}
        self._premasters: dict[bytes, bytes] = {}
        self._claimed: set[bytes] = set()
        self._files: dict[str, int] = {str(path): 0 for path in paths}
        for name in self._files:
            self._read(name, is_first=True)

    def __repr__(self) -> str:
        return f"<KeyLog: {self.lines} secrets, {self.skipped} lines skipped>"

    def __getstate__(self) -> dict[str, Any]:
        return {"paths": list(self._files), "follow": self.follow}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["paths"], follow=state["follow"])  # type: ignore[misc]

    def __bool__(self) -> bool:
        """Return whether there is any secret."""
        return bool(self._secrets or self._sessions or self._premasters)

    @property
    def is_given(self) -> bool:
        """Whether there are key log files, with or without a secret."""
        return bool(self._files)

    @property
    def may_grow(self) -> bool:
        """Whether its files may get more lines while the capture is read."""
        return self.follow and self.is_given

    @property
    def may_decrypt(self) -> bool:
        """Whether there is any secret, or one may be added."""
        return bool(self) or self.may_grow

    def refresh(self) -> bool:
        """Read bytes appended to the files; return whether that brought secrets."""
        before = self.generation
        for name in self._files:
            self._read(name, is_first=False)
        return self.generation != before

    def end(self) -> None:
        """Read the rest: no more bytes follow."""
        if self.follow:
            self.follow = False
            self.refresh()

    def add(self, content: bytes) -> None:
        """Add the content of a whole key log, such as a Decryption Secrets Block."""
        for line in re.split(rb"[\r\n]+", content):
            self._add_line(line)

    def secret(self, client_random: bytes, label: str) -> bytes | None:
        """Return the secret with a label of RFC 9850 of one connection."""
        return self._secrets.get(client_random, {}).get(label)

    def has_line(self, client_random: bytes) -> bool:
        """Return whether any line is about a connection."""
        return client_random in self._secrets

    def session_master(self, session: bytes) -> bytes | None:
        """Return the master secret of a session id or ticket."""
        return self._sessions.get(_session_key(session)) if session else None

    def premaster(self, encrypted: bytes) -> bytes | None:
        """Return the premaster secret of an encrypted one."""
        return self._premasters.get(encrypted[:PREFIX_BYTES])

    def remember_session(self, session: bytes, master: bytes) -> None:
        """Store the master secret of a session, because its resumption may have no line."""
        if session and len(self._sessions) < _MAX_SESSIONS:
            self._sessions.setdefault(_session_key(session), master)

    def claim(self, client_random: bytes) -> None:
        """Record that the hello of a connection was seen: no other connection has its lines."""
        if client_random in self._secrets:
            self._claimed.add(client_random)

    def unclaimed(self, label: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the client random and secret of lines without a captured hello, newest first."""
        for client_random in reversed(list(self._secrets)):
            secret = self._secrets[client_random].get(label)
            if secret is not None and client_random not in self._claimed:
                yield client_random, secret

    def _read(self, name: str, is_first: bool) -> None:
        """Read a file from its last position; an incomplete last line waits for its end."""
        try:
            with Path(name).open("rb") as file:
                file.seek(self._files[name])
                while chunk := file.read(_READ_BYTES):
                    whole = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
                    if not whole and len(chunk) < _READ_BYTES:
                        break
                    if not whole and is_first:  # perhaps a device, which never ends
                        what = f"key log: no line ends within {_READ_BYTES:,} bytes"
                        raise CaptureError(name, what, self._files[name])
                    self.add(chunk[: whole or len(chunk)])
                    self._files[name] += whole or len(chunk)
                    file.seek(self._files[name])
                    if len(chunk) < _READ_BYTES:
                        break
                # A complete last line may lack its newline; half of one is skipped.
                file.seek(self._files[name])
                last = file.read(_MAX_LINE_BYTES)
                if not self.follow or self._is_whole(last):
                    self._add_line(last, is_last=True)
        except OSError as error:
            if is_first:
                raise CaptureError(name, f"key log: {error.strerror or error}") from None

    def _is_whole(self, line: bytes) -> bool:
        """Return whether a line without a newline is as long as others of its connection."""
        words = line.decode("latin-1").split()
        try:
            known = self._secrets[bytes.fromhex(words[1])]
        except (IndexError, KeyError, ValueError):
            return False
        return len(words) == 3 and len(words[2]) in {2 * len(each) for each in known.values()}

    def _add_line(self, raw: bytes, is_last: bool = False) -> None:
        line = raw.removeprefix(BOM_UTF8).decode("latin-1").strip()
        if not line or line.startswith("#"):
            return
        if len(line) > _MAX_LINE_BYTES or not (
            self._add_session(line) or self._add_secret(line, is_last)
        ):
            self.skipped += not is_last

    def _add_session(self, line: str) -> bool:
        match = _SESSION.match(line)
        if match is None:
            return False
        self._keep(self._sessions, _session_key(bytes.fromhex(match[1])), bytes.fromhex(match[2]))
        return True

    def _add_secret(self, line: str, is_last: bool) -> bool:
        """Add a line of three words; return whether it is one."""
        words = line.split()
        if len(words) != 3 or not (words[0] in _LABELS or words[0] == "RSA"):
            return False
        label = words[0]
        try:
            about, secret = bytes.fromhex(words[1]), bytes.fromhex(words[2])
        except ValueError:
            return False
        if label in _UNUSED:
            return True
        if label == "RSA":
            if len(about) != PREFIX_BYTES or len(secret) != MASTER_BYTES_OF_RSA:
                return False
            self._keep(self._premasters, about, secret)
            return True
        if len(about) != RANDOM_BYTES or not _is_length_of(label, len(secret)):
            return False
        self._keep(self._secrets.setdefault(about, {}), label, secret)
        return True

    def _keep(self, table: dict[Any, bytes], key: Any, secret: bytes) -> None:
        """Add a secret; a repeated line changes nothing."""
        if table.get(key) != secret:
            table[key] = secret
            self.lines += 1
            self.generation += 1


MASTER_BYTES_OF_RSA = 48


def _is_length_of(label: str, length: int) -> bool:
    if label == MASTER_LABEL:
        return length == 48
    return length > 0 if label == PREMASTER_LABEL else length in (32, 48)


def _session_key(session: bytes) -> bytes:
    """Return a session id unchanged, a ticket as its hash."""
    if len(session) <= 32:
        return session
    import hashlib  # takes two milliseconds, more than everything else here

    return hashlib.sha256(session).digest() + b"ticket"
