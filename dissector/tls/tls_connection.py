"""
A TLS connection as a passive reader with a key log sees it.

Ordered bytes of both directions go in, plaintext comes out. Only plaintext with a verified tag or
MAC is shown.
"""

from __future__ import annotations

from typing import Any

from dissector.errors import Problem
from dissector.tls import handshake_messages as messages
from dissector.tls import record_run
from dissector.tls.cipher_suites import suite_name
from dissector.tls.handshake_messages import VERSIONS, BadMessage
from dissector.tls.key_log import KeyLog
from dissector.tls.negotiation import (
    APPLICATION,
    CLIENT,
    EARLY,
    HANDSHAKE,
    SERVER,
    TLS12_KEYS,
    Epoch,
    Negotiation,
    without_secrets,
)
from dissector.tls.record_finder import RecordFinder
from dissector.tls.record_stream import BLOCKED, SEARCH, SYNC, RecordStream
from dissector.tls.tls_summary import LINES_MAY_COME, Plaintext, Reason, TlsSummary

MAX_PROBLEMS = 64
"""More problems of a connection are only counted."""

OFFERED, ACCEPTED, REJECTED = "offered", "accepted", "rejected"
"""States of early data."""


class TlsConnection:
    """
    Both directions of a TLS connection.

    Attributes:
        problems: Side and problem; positions are offsets in the stream of the side.
        problem_count: Number of problems, including those not kept.
        client: The side of the client; None while unknown.
        negotiation: The result of the hellos.
        streams: Both directions.
    """

    def __init__(self, keys: KeyLog) -> None:
        self.problems: list[tuple[int, Problem]] = []
        self.problem_count = 0
        self.client: int | None = None
        self.negotiation = Negotiation()
        self._keys = keys
        self._finder = RecordFinder(self.negotiation)
        self.streams = (RecordStream(0, self), RecordStream(1, self))
        self._early = ""
        self._has_retry = False
        self._alpn = self._subject = ""
        self._resumed: bool | None = None
        self._key_updates = 0
        self._is_renegotiated = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without keys; `attach` finds them again."""
        return {name: value for name, value in self.__dict__.items() if name != "_keys"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keys = KeyLog()

    def attach(self, keys: KeyLog) -> None:
        """Continue with a key log, after unpickling."""
        self._keys = keys
        for stream in self.streams:
            sequence, stream.pickled_sequence = stream.pickled_sequence, None
            if sequence is not None and stream.epoch is not None:
                self._set_cipher(stream, stream.epoch)
                if stream.cipher is not None:
                    stream.cipher.sequence = sequence

    def feed(self, side: int, data: bytes, time_ns: int, packet: int) -> list[Plaintext]:
        """
        Process the next bytes of a side.

        Returns:
            Plaintext of the records that are complete now; of the other side too, if that has
            waited for a hello.
        """
        stream = self.streams[side]
        if stream.reason is not None or stream.mode >= BLOCKED:
            self._try_again(stream)
        stream.feed(data, time_ns, packet)
        return self._output(stream)

    def gap(self, side: int, length: int | None, time_ns: int, packet: int) -> list[Plaintext]:
        """Record uncaptured bytes of a side; None: an unknown number."""
        stream = self.streams[side]
        stream.lose(length, time_ns, packet)
        return self._output(stream)

    def finish(self) -> list[Plaintext]:
        """Process queued bytes, at the end of the capture."""
        for stream in self.streams:
            self._try_again(stream)
            if stream.mode == BLOCKED:
                self.give_up_waiting(stream)
        return [*self._output(self.streams[0]), *self._output(self.streams[1])]

    def barriers(self) -> tuple[int | None, int | None] | None:
        """Return each side's lowest packet with bytes that wait for the other side or for keys."""
        first, second = self.streams
        return (first.oldest_packet, second.oldest_packet) if first.mode or second.mode else None

    @property
    def is_settled(self) -> bool:
        """Whether no later bytes can be decrypted."""
        return not self._keys.may_grow and all(each.is_sealed for each in self.streams)

    def summary(self) -> TlsSummary:
        """Return the known facts about the connection."""
        facts, streams = self.negotiation, self.streams
        hello, offer = facts.server_hello, facts.client_hello
        reasons = [each.reason for each in streams if each.reason is not None]
        decrypted = sum(each.decrypted for each in streams)
        reason = reasons[0] if reasons else None
        if reason is None and not decrypted:
            reason = Reason.NO_DATA if self._keys else without_secrets(self._keys)
        return TlsSummary(
            version=VERSIONS.get(facts.version, f"0x{facts.version:04X}") if facts.version else "",
            suite=suite_name(facts.suite_number) if facts.suite_number else "",
            server_name="" if offer is None else offer.server_name,
            alpn=self._alpn or ("" if hello is None else hello.alpn),
            resumed=self._resumed,
            client_subject=self._subject,
            reason=reason,
            records=sum(each.records for each in streams),
            decrypted=decrypted,
            failed=sum(each.failed for each in streams),
            plain_bytes=sum(each.plain_bytes for each in streams),
            key_updates=self._key_updates,
            has_early_data=self._early == ACCEPTED,
            renegotiated=self._is_renegotiated,
            resyncs=self._finder.resyncs,
        )

    def take(self, stream: RecordStream, kind: int, content: bytes, is_protected: bool) -> bool:
        """Process the content of a record other than data; return False if it has to wait."""
        if kind == record_run.HANDSHAKE_RECORD:
            return self._take_handshake(stream, content, is_protected)
        if kind == record_run.CHANGE_CIPHER_SPEC:
            return self._take_change_cipher_spec(stream, is_protected)
        if kind == record_run.APPLICATION_DATA and stream.cipher is None:
            return self._take_sealed(stream)
        if kind != record_run.ALERT:
            self.report(stream, f"unexpected record of type {kind}", stream.offset)
        return True

    def locate(self, stream: RecordStream, header: bytes, body: bytes) -> bool:
        """Find keys and sequence number of a record; return whether that succeeded."""
        found = self._finder.locate(stream, header, body, self._keys)
        if found and self.client is None and stream.role is not None:
            self._set_client(stream.side if stream.role == CLIENT else 1 - stream.side)
        elif not found and self._finder.is_hopeless(stream):
            self._seal(stream, self._finder.reason(self._keys))
            stream.drop()
        return found

    def fail(self, stream: RecordStream, header: bytes, body: bytes) -> None:
        """Process a record that does not verify."""
        if self._early == REJECTED and stream.role == CLIENT and not stream.decrypted:
            return  # early data that the server did not read either
        stream.failed += 1
        self.report(stream, "the tag of a TLS record does not verify", stream.offset)
        if not stream.decrypted:
            self._seal(stream, Reason.TAG_MISMATCH)
            stream.drop()
        elif stream.is_certain and stream.cipher is not None:
            stream.is_certain = False
            stream.cipher.sequence += 1
        else:
            stream.search(0)

    def give_up_waiting(self, stream: RecordStream) -> None:
        """Continue without the awaited message."""
        if self._early == OFFERED:
            self._early = REJECTED
        stream.search(None)
        stream.resume(SEARCH)

    def report(self, stream: RecordStream, what: str, offset: int) -> None:
        """Add a problem."""
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append((stream.side, Problem(what, position=offset)))

    def _output(self, stream: RecordStream) -> list[Plaintext]:
        """Return the plaintext, after the other side has continued if it waited for this one."""
        other = self.streams[1 - stream.side]
        if other.mode == BLOCKED and not self._must_wait(other):
            other.resume()
        out = stream.out + other.out if other.out else stream.out
        stream.out, other.out = [], other.out and []
        return out

    def _must_wait(self, stream: RecordStream) -> bool:
        """Return whether a direction needs something that the other one may still bring."""
        other = self.streams[1 - stream.side]
        if stream.reason in LINES_MAY_COME and self._keys.may_grow:
            return stream.tried_generation == self._keys.generation
        if stream.role == CLIENT:
            if self.negotiation.server_hello is None:
                return other.mode == SYNC and (not other.records or self._has_retry)
            return self._early == OFFERED and other.reason is None and other.mode == SYNC
        return self.negotiation.client_hello is None and other.is_virgin

    def _try_again(self, stream: RecordStream) -> None:
        """Use new lines of a growing key log."""
        if stream.tried_generation == self._keys.generation or not stream.reason:
            return
        stream.tried_generation = self._keys.generation
        if stream.reason not in (*LINES_MAY_COME, Reason.NO_KEY_LOG, Reason.NO_HELLOS):
            return
        stream.reason = None
        if stream.mode == BLOCKED and stream.epoch is not None:
            self._set_cipher(stream, stream.epoch)
            stream.resume()
        else:
            self._finder.renew(stream)
            stream.search(None)

    def _set_client(self, side: int) -> None:
        self.client = side
        self.streams[side].role, self.streams[1 - side].role = CLIENT, SERVER

    def _stream(self, role: int) -> RecordStream:
        assert self.client is not None
        return self.streams[self.client if role == CLIENT else 1 - self.client]

    def _set_cipher(self, stream: RecordStream, epoch: Epoch) -> bool:
        """Protect a direction from now on; return whether there are keys."""
        stream.epoch = epoch
        stream.cipher = None
        if stream.role is not None:
            stream.cipher = self.negotiation.cipher(stream.role, epoch, self._keys)
        if stream.cipher is None:
            self._seal(stream, self.negotiation.reason(self._keys))
        return stream.cipher is not None

    def _seal(self, stream: RecordStream, reason: Reason) -> None:
        stream.reason = reason
        stream.cipher = None
        stream.tried_generation = self._keys.generation

    def _take_sealed(self, stream: RecordStream) -> bool:
        """Process encrypted data without a cipher."""
        if stream.reason is not None:
            if stream.reason in LINES_MAY_COME and self._keys.may_grow:
                stream.block()
                return False
            return True
        if stream.role is not None and self._must_wait(stream):
            stream.block()
            return False
        if self.negotiation.server_hello is not None and not self.negotiation.is_tls13:
            self._seal(stream, Reason.NO_HELLOS)
            return True
        stream.search(None)
        return False

    def _take_change_cipher_spec(self, stream: RecordStream, is_protected: bool) -> bool:
        facts = self.negotiation
        if facts.is_tls13 or (stream.role == SERVER and facts.server_hello is None):
            return True
        if is_protected:
            self._is_renegotiated = True
            self.report(stream, "renegotiation is not followed", stream.offset)
            self._seal(stream, Reason.RENEGOTIATED)
            stream.drop()
            return True
        if stream.role is not None and self._must_wait(stream):
            stream.block()
            return False
        stream.handshake.clear()
        if facts.server_hello is None:
            stream.search(None)  # of TLS 1.3, perhaps
            return True
        if stream.role == SERVER and self._resumed is None and facts.client_hello is not None:
            self._resumed = not facts.has_hello_done
        if self._set_cipher(stream, Epoch(TLS12_KEYS)):
            if all(each.cipher is not None for each in self.streams):
                facts.drop_transcript()
            if facts.server_hello is not None and stream.role == SERVER:
                facts.remember_session(facts.server_hello.session_id, self._keys)
        return True

    def _take_handshake(self, stream: RecordStream, content: bytes, is_protected: bool) -> bool:
        if not is_protected and stream.cipher is not None:
            return True
        if not is_protected and stream.epoch is not None:
            return True  # encrypted, without keys
        is_new = content[:1] == b"\x02" and not stream.handshake.pending
        other = self.streams[1 - stream.side]
        if is_new and self.client is None and other.is_virgin and not is_protected:
            self._set_client(1 - stream.side)
            stream.block()
            return False
        skipped = stream.handshake.skipped
        for message in stream.handshake.feed(content):
            try:
                self._take_message(stream, message, is_protected)
            except BadMessage as error:
                what = f"handshake message of type {message[0]}: {error}"
                self.report(stream, what, stream.offset)
        if stream.handshake.skipped != skipped:
            self.report(stream, "handshake message too long", stream.offset)
        return True

    def _take_message(self, stream: RecordStream, message: bytes, is_protected: bool) -> None:
        kind, body = message[0], message[4:]
        if is_protected:
            self._take_protected(stream, kind, body)
            return
        if kind == messages.CLIENT_HELLO:
            if self.negotiation.server_hello is None:
                self._set_client(stream.side)
                hello = messages.read_client_hello(body)
                self.negotiation.take_client_hello(hello, self._keys)
                is_early = hello.has_early_data and not self._has_retry
                self._early = OFFERED if is_early else ""
        elif kind == messages.SERVER_HELLO and self.negotiation.server_hello is None:
            self._take_server_hello(stream, body)
        elif kind == messages.CERTIFICATE and stream.role == CLIENT:
            self._subject = messages.read_subject(body, is_tls13=False)
        elif kind == messages.SERVER_HELLO_DONE:
            self.negotiation.has_hello_done = True
            self._resumed = False
        elif kind == messages.NEW_SESSION_TICKET and stream.role == SERVER:
            self.negotiation.remember_session(messages.read_ticket(body), self._keys)
        if stream.role is not None and kind != messages.HELLO_REQUEST:
            self.negotiation.record_message(stream.role, message)
        if kind == messages.CLIENT_KEY_EXCHANGE and stream.role == CLIENT:
            self.negotiation.has_key_exchange = True
            self.negotiation.encrypted_premaster = messages.read_encrypted_premaster(body)

    def _take_server_hello(self, stream: RecordStream, body: bytes) -> None:
        hello = messages.read_server_hello(body)
        if self.client is None:
            self._set_client(1 - stream.side)
        if hello.is_retry:
            self._has_retry = True
            self._early = ""
            return
        self.negotiation.take_server_hello(hello)
        if self.negotiation.is_tls13:
            self._resumed = hello.has_pre_shared_key
            if not self.negotiation.client_random:
                for each in self.streams:
                    each.search(None)
                return
            self._set_cipher(stream, Epoch(HANDSHAKE))
            if self._early != OFFERED or stream.cipher is None:
                self._set_cipher(self._stream(CLIENT), Epoch(HANDSHAKE))

    def _take_protected(self, stream: RecordStream, kind: int, body: bytes) -> None:
        """Process a handshake message that was encrypted."""
        if not self.negotiation.is_tls13:
            if kind in (messages.HELLO_REQUEST, messages.CLIENT_HELLO):
                self._is_renegotiated = True
                self.report(stream, "renegotiation is not followed", stream.offset)
            return
        epoch = stream.epoch or Epoch(HANDSHAKE)
        if kind == messages.FINISHED and epoch.kind == HANDSHAKE:
            self._set_cipher(stream, Epoch(APPLICATION))
        elif kind == messages.KEY_UPDATE and epoch.kind == APPLICATION:
            self._key_updates += 1
            self._set_cipher(stream, Epoch(APPLICATION, epoch.generation + 1))
        elif kind == messages.END_OF_EARLY_DATA and epoch.kind == EARLY:
            self._set_cipher(stream, Epoch(HANDSHAKE))
        elif kind == messages.CERTIFICATE and stream.role == CLIENT:
            self._subject = messages.read_subject(body, is_tls13=True) or self._subject
        elif kind == messages.ENCRYPTED_EXTENSIONS and stream.role == SERVER:
            extensions = messages.read_encrypted_extensions(body)
            self._alpn = messages.alpn_of(extensions)
            if self._early == OFFERED:
                self._start_client(messages.accepts_early_data(extensions))

    def _start_client(self, is_early_accepted: bool) -> None:
        self._early = ACCEPTED if is_early_accepted else REJECTED
        self._set_cipher(self._stream(CLIENT), Epoch(EARLY if is_early_accepted else HANDSHAKE))
