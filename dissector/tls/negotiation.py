"""The result of a connection's hellos, and its record ciphers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dissector.tls.cipher_suites import SUITES, TLS13_SUITES, CipherSuite
from dissector.tls.handshake_messages import TLS12, TLS13, Hello
from dissector.tls.key_log import MASTER_LABEL, PREMASTER_LABEL, KeyLog
from dissector.tls.key_schedule import extended_master_secret, master_secret, next_traffic_secret
from dissector.tls.record_ciphers import RecordCipher, Tls13Cipher, tls12_ciphers
from dissector.tls.tls_summary import Reason

EARLY, HANDSHAKE, APPLICATION, TLS12_KEYS = "early", "handshake", "application", "tls12"

_LABELS = {
    EARLY: ("CLIENT_EARLY_TRAFFIC_SECRET", ""),
    HANDSHAKE: ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
    APPLICATION: ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"),
}

CLIENT, SERVER = 0, 1

MAX_TRANSCRIPT_BYTES = 1 << 18
"""Longer handshakes have no extended master secret of ours."""


class Epoch(NamedTuple):
    """The keys of a direction: their kind, and number of updates."""

    kind: str
    generation: int = 0


class Entry(NamedTuple):
    """Possible place of a connection without hellos: line of the key log, suite, role, epoch."""

    client_random: bytes
    suite: CipherSuite
    role: int
    epoch: Epoch


@dataclass(slots=True)
class Negotiation:
    """
    State of the handshake of one connection; it holds no secret.

    Attributes:
        client_random: Random of the ClientHello, or of the line found for the connection.
        server_hello: The ServerHello; None until it is received.
        client_hello: The ClientHello, None before it.
        version: The version; 0 while unknown.
        suite_number: The code point of the suite; 0 while unknown.
        encrypted_premaster: The encrypted premaster secret of a ClientKeyExchange.
        sent: Handshake messages of client and server up to the ClientKeyExchange.
        sent_bytes: Their length.
        has_hello_done: Whether the server has sent ServerHelloDone: a full handshake of TLS 1.2.
        has_key_exchange: Whether the client has sent ClientKeyExchange.
    """

    client_random: bytes = b""
    server_hello: Hello | None = None
    client_hello: Hello | None = None
    version: int = 0
    suite_number: int = 0
    encrypted_premaster: bytes = b""
    sent: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))
    sent_bytes: int = 0
    has_hello_done: bool = False
    has_key_exchange: bool = False

    @property
    def suite(self) -> CipherSuite | None:
        """The suite, if it is supported."""
        suite = SUITES.get(self.suite_number)
        return suite if suite is not None and suite.is_tls13 == (self.version == TLS13) else None

    @property
    def is_tls13(self) -> bool:
        """Whether TLS 1.3 was chosen."""
        return self.version == TLS13

    def take_client_hello(self, hello: Hello, keys: KeyLog) -> None:
        """Process the ClientHello, the last one after a HelloRetryRequest."""
        self.client_hello = hello
        self.client_random = hello.random
        keys.claim(hello.random)

    def take_server_hello(self, hello: Hello) -> None:
        """Process the ServerHello, which is not a HelloRetryRequest."""
        self.server_hello = hello
        self.version = hello.version
        self.suite_number = hello.suite

    def record_message(self, role: int, message: bytes) -> None:
        """Keep a message for the transcript of the extended master secret."""
        is_wanted = not (self.has_key_exchange or self.is_tls13)
        if is_wanted and self.sent_bytes + len(message) <= MAX_TRANSCRIPT_BYTES:
            self.sent[role].append(message)
            self.sent_bytes += len(message)

    def drop_transcript(self) -> None:
        """Drop the messages: all keys that depend on them are known."""
        self.sent[0].clear()
        self.sent[1].clear()

    def enter(self, entry: Entry) -> None:
        """Use a line found for a TLS 1.3 connection without captured hellos."""
        self.client_random = entry.client_random
        self.version = TLS13
        self.suite_number = entry.suite.number

    def cipher(self, role: int, epoch: Epoch, keys: KeyLog) -> RecordCipher | None:
        """Return the cipher of a side; None if that is not possible, see `reason`."""
        suite = self.suite
        if suite is None:
            return None
        if epoch.kind == TLS12_KEYS:
            return self._tls12(role, suite, keys)
        return tls13_cipher(suite, self.client_random, role, epoch, keys)

    def reason(self, keys: KeyLog) -> Reason:
        """Return why no cipher is available."""
        if self.version not in (0, TLS12, TLS13):
            return Reason.UNSUPPORTED_VERSION
        if self.server_hello is not None and self.suite is None:
            return Reason.UNSUPPORTED_CIPHER
        if not keys:
            return without_secrets(keys)
        if not self.client_random or (self.server_hello is None and self.version != TLS13):
            return Reason.NO_HELLOS
        return Reason.NO_LINE

    def remember_session(self, session: bytes, keys: KeyLog) -> None:
        """Keep the master secret for a session that may be resumed without a separate line."""
        suite = self.suite
        master = None if suite is None else self._master(suite, keys)
        if master is not None:
            keys.remember_session(session, master)

    def entries(self, role: int | None, keys: KeyLog) -> Iterator[Entry]:
        """Yield where this connection of TLS 1.3 may be, the probable places first."""
        roles = (CLIENT, SERVER) if role is None else (role,)
        has_hello = self.client_random or self.server_hello is not None
        for kind in (APPLICATION, HANDSHAKE) if has_hello else (APPLICATION,):
            for each in roles:
                label = _LABELS[kind][each]
                if self.client_random:
                    secret = keys.secret(self.client_random, label)
                    lines = [] if secret is None else [(self.client_random, secret)]
                else:
                    lines = list(keys.unclaimed(label))
                for client_random, secret in lines:
                    for suite in self._suites(len(secret)):
                        yield Entry(client_random, suite, each, Epoch(kind))

    def _suites(self, secret_bytes: int) -> Iterator[CipherSuite]:
        """Yield the suites that a secret of this length may belong to."""
        if self.suite_number:
            if self.suite is not None:
                yield self.suite
            return
        for suite in TLS13_SUITES:
            if (48 if suite.hash_name == "sha384" else 32) == secret_bytes:
                yield suite

    def _tls12(self, role: int, suite: CipherSuite, keys: KeyLog) -> RecordCipher | None:
        hello = self.server_hello
        master = self._master(suite, keys)
        if hello is None or master is None or not self.client_random:
            return None
        ciphers = tls12_ciphers(
            suite, master, self.client_random, hello.random, hello.encrypts_then_macs
        )
        return ciphers[role]

    def _master(self, suite: CipherSuite, keys: KeyLog) -> bytes | None:
        """Return the master secret by any kind of line."""
        hello, offer = self.server_hello, self.client_hello
        master = keys.secret(self.client_random, MASTER_LABEL)
        if master is None and hello is not None:
            master = keys.session_master(hello.session_id)
        if master is None and offer is not None and not self.has_hello_done:
            master = keys.session_master(offer.ticket)
        if master is not None or hello is None:
            return master
        premaster = keys.secret(self.client_random, PREMASTER_LABEL)
        if premaster is None and self.encrypted_premaster:
            premaster = keys.premaster(self.encrypted_premaster)
        if premaster is None:
            return None
        if hello.has_extended_master:
            transcript = b"".join((*self.sent[0][:1], *self.sent[1], *self.sent[0][1:]))
            return extended_master_secret(suite.hash_name, premaster, transcript)
        return master_secret(suite.hash_name, premaster, self.client_random, hello.random)


def without_secrets(keys: KeyLog) -> Reason:
    """Return why no cipher is available if no secret is known at all."""
    return Reason.EMPTY_KEY_LOG if keys.is_given else Reason.NO_KEY_LOG


def tls13_cipher(
    suite: CipherSuite, client_random: bytes, role: int, epoch: Epoch, keys: KeyLog
) -> RecordCipher | None:
    """Return a cipher of TLS 1.3; None if its line is missing or does not fit the suite."""
    label = _LABELS[epoch.kind][role]
    secret = keys.secret(client_random, label) if label else None
    if secret is None or len(secret) != (48 if suite.hash_name == "sha384" else 32):
        return None
    for _ in range(epoch.generation):
        secret = next_traffic_secret(suite.hash_name, secret)
    return Tls13Cipher(suite, secret)
