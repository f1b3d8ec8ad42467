"""One direction of a TLS connection: ordered bytes and gaps to records."""

from __future__ import annotations

import re
from typing import Any, Protocol

from dissector.tls.handshake_buffer import HandshakeBuffer
from dissector.tls.held_bytes import HeldBytes, Piece
from dissector.tls.negotiation import APPLICATION, TLS12_KEYS, Epoch
from dissector.tls.record_ciphers import MAX_SEQUENCE, UNVERIFIED, RecordCipher
from dissector.tls.record_run import (
    APPLICATION_DATA,
    HEADER,
    HEADER_BYTES,
    MAX_BODY_BYTES,
    RecordRun,
    needed_bytes,
    read_run,
)
from dissector.tls.tls_summary import Plaintext, Reason

WAITING_BYTES = 256 << 10
"""Bytes of a direction that may wait for hellos in the other one, or for keys."""

PIECE_BYTES = 1 << 16
"""Longer input is split, to bound the buffer."""

MAX_ATTEMPTS = 256
"""Number of records tried after a gap before the direction is given up."""

SYNC, SEARCH, BLOCKED, DROP = range(4)
"""
Modes: the next byte begins a record; a record is looked for; bytes wait for the other direction or
for keys; bytes are dropped.
"""

_CANDIDATE = re.compile(rb"(?s)[\x15-\x17]\x03[\x01-\x03][\x00-\x48].")


class Owner(Protocol):
    """The interface of a stream to its connection."""

    def take(self, stream: RecordStream, kind: int, content: bytes, is_protected: bool) -> bool:
        """Process the content of a record other than data; return False if it has to wait."""

    def locate(self, stream: RecordStream, header: bytes, body: bytes) -> bool:
        """Find keys and sequence number of a record; return whether that succeeded."""

    def fail(self, stream: RecordStream, header: bytes, body: bytes) -> None:
        """Process a record that does not verify."""

    def give_up_waiting(self, stream: RecordStream) -> None:
        """Continue without the awaited message."""

    def report(self, stream: RecordStream, what: str, offset: int) -> None:
        """Add a problem."""


class RecordStream:
    """
    The state of one direction.

    Attributes:
        side: Its number.
        role: `CLIENT` or `SERVER`; None while unknown.
        mode: See `SYNC`.
        cipher: Decrypts the next record; None before encryption, and where that is not possible.
        epoch: Which keys `cipher` has.
        reason: Why records are not decrypted.
        handshake: Its incomplete handshake message.
        held: Bytes that wait for the rest of their record.
        offset: Offset in the stream of the first byte held.
        is_certain: Whether the sequence number is certain.
        lost_bytes: Bytes of the stream since the last decrypted record, while searching; None if
            unknown.
        attempts: Records tried since the last decrypted one.
        tried_generation: State of the key log that was tried in vain.
        last_explicit: The first 8 bytes of the last record tried in vain.
        pickled_sequence: Sequence number of the cipher that a pickle has left out.
        records: Records seen.
        decrypted: Records decrypted.
        failed: Records that did not verify.
        plain_bytes: Bytes of data.
        out: Plaintext that was not returned yet.
    """

    __slots__ = (
        "_need",
        "_owner",
        "_skip",
        "attempts",
        "cipher",
        "decrypted",
        "epoch",
        "failed",
        "handshake",
        "held",
        "is_certain",
        "last_explicit",
        "lost_bytes",
        "mode",
        "offset",
        "out",
        "pickled_sequence",
        "plain_bytes",
        "reason",
        "records",
        "role",
        "side",
        "tried_generation",
    )

    def __init__(self, side: int, owner: Owner) -> None:
        self.side = side
        self._owner = owner
        self.role: int | None = None
        self.mode = SYNC
        self.cipher: RecordCipher | None = None
        self.epoch: Epoch | None = None
        self.reason: Reason | None = None
        self.handshake = HandshakeBuffer()
        self.offset = 0
        self.pickled_sequence: int | None = None
        self.is_certain = True
        self.lost_bytes: int | None = 0
        self.attempts = 0
        self.tried_generation = -1
        self.last_explicit: int | None = None
        self.records = self.decrypted = self.failed = self.plain_bytes = 0
        self.out: list[Plaintext] = []
        self.held = HeldBytes()
        self._need = HEADER_BYTES
        self._skip = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without keys: their epoch and sequence number find them again."""
        state = {name: getattr(self, name) for name in self.__slots__ if name != "cipher"}
        if self.cipher is not None:
            state["pickled_sequence"] = self.cipher.sequence
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.cipher = None
        for name, value in state.items():
            setattr(self, name, value)
        self.tried_generation = -1

    @property
    def is_virgin(self) -> bool:
        """Whether no byte of this direction was received, so that its hello may still follow."""
        return not self.offset and not self.held.size and self.mode == SYNC

    @property
    def is_sealed(self) -> bool:
        """Whether the present key log decrypts no further record."""
        return self.reason is not None or self.mode == DROP

    @property
    def carries_data(self) -> bool:
        """Whether records may carry data with the present keys."""
        return self.epoch is not None and self.epoch.kind in (APPLICATION, TLS12_KEYS)

    def feed(self, data: bytes, time_ns: int, packet: int) -> None:
        """Process the next bytes."""
        if len(data) > PIECE_BYTES:
            for at in range(0, len(data), PIECE_BYTES):
                self.feed(data[at : at + PIECE_BYTES], time_ns, packet)
            return
        if self._skip:
            data = self._skip_lost(data)
        if not data or self.mode == DROP:
            self.offset += len(data)
            return
        held = self.held
        held.pieces.append((data, time_ns, packet))
        held.size += len(data)
        if held.size >= self._need:
            if self.mode == SYNC:
                self._read_records(held.join())
            if held.size >= self._need:
                self._drain()

    def read_ahead(self, data: memoryview) -> RecordRun | None:
        """
        Decrypt the records of data that the next bytes complete; nothing changes until `take_run`.

        They do not depend on the other side while none is in another mode than SYNC.

        Returns:
            None if the next bytes have to be fed.
        """
        if self.cipher is None or self.mode != SYNC or self.reason is not None or self._skip:
            return None
        whole = self.held.join() + bytes(data) if self.held.size else bytes(data)
        return read_run(self.cipher, whole, self.held.size)

    def take_run(self, run: RecordRun, tail: list[Piece]) -> None:
        """Take the bytes of a run; `tail` has those behind its last record."""
        count = len(run.stops)
        if count and self.cipher is not None:
            self.cipher.sequence = self.cipher.sequence + count & MAX_SEQUENCE
            self.is_certain = True
            self.records += count
            self.decrypted += count
            self.plain_bytes += sum(map(len, run.contents))
            self.offset += run.used
            self.held.pieces.clear()
        self.held.pieces += tail
        self.held.size = len(run.data) - run.used
        self._need = needed_bytes(run.data[run.used :])

    def lose(self, length: int | None, time_ns: int, packet: int) -> None:
        """Record missing bytes; None: their number is unknown."""
        if self.mode == BLOCKED:
            self._owner.give_up_waiting(self)
        if self.mode == DROP:
            self.offset += length or 0
            return
        self.handshake.clear()
        missing = self._skip or (
            self._need - self.held.size if self.held.size >= HEADER_BYTES else 0
        )
        if self.mode == SYNC and length is not None and length <= missing:
            self._begin_skip(missing - length, time_ns, packet)
            self.offset += length
            return
        lost = None if length is None else length + self.held.size
        self._keep_from(self.held.size)
        self._skip = 0
        self.offset += length or 0
        if self.mode == SEARCH and self.lost_bytes is not None:
            self.lost_bytes = None if lost is None else self.lost_bytes + lost
        elif self.mode == SYNC:
            self.search(lost)

    def search(self, lost: int | None) -> None:
        """Look for a record from the next byte on."""
        self.mode = SEARCH
        self.is_certain = False
        self.lost_bytes = lost
        self.attempts = 0
        self._need = HEADER_BYTES

    def block(self) -> None:
        """Queue all bytes."""
        self.mode = BLOCKED
        self._need = WAITING_BYTES

    def drop(self) -> None:
        """Drop all bytes from now on."""
        self.mode = DROP
        self._keep_from(self.held.size)

    def resume(self, mode: int = SYNC) -> None:
        """Process queued bytes."""
        self.mode = mode
        self._need = HEADER_BYTES
        if self.held.size >= self._need:
            self._drain()

    def add_gap(self, length: int | None, time_ns: int, packet: int) -> None:
        """Emit that plaintext is missing."""
        if length != 0:
            self.out.append(Plaintext(self.side, None, length, time_ns, packet))

    def _drain(self) -> None:
        """Process all bytes that can be processed."""
        before = (-1, -1)
        while self.held.size >= self._need and before != (self.mode, self.held.size):
            before = (self.mode, self.held.size)
            if self.mode == BLOCKED:
                self._owner.give_up_waiting(self)
                break
            data = self.held.join()
            if self.mode == SYNC:
                self._read_records(data)
            elif self.mode == SEARCH:
                self._search_record(data)
            else:
                self._keep_from(self.held.size)

    def _read_records(self, data: bytes) -> None:
        at, end = 0, len(data)
        self._need = HEADER_BYTES
        while end - at >= HEADER_BYTES:
            kind, version, length = HEADER.unpack_from(data, at)
            if not 20 <= kind <= 23 or version >> 8 != 3 or length > MAX_BODY_BYTES:
                self._lose_record_boundary(at)
                return
            stop = at + HEADER_BYTES + length
            if stop > end:
                self._need = stop - at
                break
            cipher = self.cipher
            content = data[at + HEADER_BYTES : stop]
            is_protected = cipher is not None and (
                kind == APPLICATION_DATA or not cipher.suite.is_tls13
            )
            if is_protected and cipher is not None:
                header = data[at : at + HEADER_BYTES]
                try:
                    kind, content = cipher.open(header, content)
                except UNVERIFIED:
                    self._keep_from(at)
                    self.records += 1
                    self._owner.fail(self, header, content)
                    if self.mode == SYNC:
                        self.add_gap(cipher.plain_bytes(length), *self.held.packet_of(stop - at))
                        self._keep_from(stop - at)
                    return
                self.decrypted += 1
                self.is_certain = True
            if kind == APPLICATION_DATA and is_protected:
                if content:
                    _, time_ns, packet = self.held.pieces[-1]
                    if len(self.held.pieces) > 1:
                        time_ns, packet = self.held.packet_of(stop)
                    self.plain_bytes += len(content)
                    self.out.append(Plaintext(self.side, content, len(content), time_ns, packet))
            elif not self._owner.take(self, kind, content, is_protected):
                self._keep_from(at)
                return
            self.records += 1
            at = stop
            if self.mode != SYNC:
                break
        self._keep_from(at)

    def _lose_record_boundary(self, at: int) -> None:
        self._keep_from(at)
        if self.offset or self.records:
            self._owner.report(self, "no TLS record begins here", self.offset)
        self.handshake.clear()
        self.search(0)

    def _search_record(self, data: bytes) -> None:
        """Try the next candidate for a record."""
        match = _CANDIDATE.search(data)
        if match is None:
            self._forget(max(0, len(data) - HEADER_BYTES + 1))
            self._need = HEADER_BYTES
            return
        at = match.start()
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        stop = at + HEADER_BYTES + length
        self._forget(at)
        if stop > len(data):
            self._need = stop - at
            return
        self._need = HEADER_BYTES
        header, body = data[at : at + HEADER_BYTES], data[at + HEADER_BYTES : stop]
        if length <= MAX_BODY_BYTES and self._owner.locate(self, header, body):
            if self.mode == SEARCH:
                self.mode = SYNC
        elif self.mode == SEARCH:
            self.attempts += 1
            if self.attempts > MAX_ATTEMPTS:
                self.drop()
            else:
                self._forget(1)

    def _begin_skip(self, left: int, time_ns: int, packet: int) -> None:
        """Skip the rest of a record with lost bytes."""
        if not self._skip:
            header = self.held.join()[:HEADER_BYTES]
            length = int.from_bytes(header[3:5], "big")
            cipher = self.cipher
            if cipher is not None and (header[0] == APPLICATION_DATA or not cipher.suite.is_tls13):
                cipher.sequence += 1
                is_data = header[0] == APPLICATION_DATA and self.carries_data
                self.add_gap(cipher.plain_bytes(length) if is_data else 0, time_ns, packet)
            self.records += 1
            self.is_certain = False
            self._keep_from(self.held.size)
        self._skip = left
        self._need = HEADER_BYTES

    def _skip_lost(self, data: bytes) -> bytes:
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self.offset += skipped
        return data[skipped:]

    @property
    def oldest_packet(self) -> int | None:
        """The lowest packet with bytes that may still be emitted with its number, or None."""
        return self.held.pieces[0][2] if self.held.size and self.mode != SYNC else None

    def _forget(self, count: int) -> None:
        """Drop bytes that hold no record."""
        if self.lost_bytes is not None:
            self.lost_bytes += count
        self._keep_from(count)

    def _keep_from(self, at: int) -> None:
        """Drop the first bytes held."""
        self.offset += at
        self.held.drop(at)
