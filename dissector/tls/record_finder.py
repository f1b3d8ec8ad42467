"""
The place in a connection: keys and sequence number of a record after lost bytes.

Tag or MAC decide: candidates are tried until one verifies.
"""

from __future__ import annotations

from dissector.tls.key_log import KeyLog
from dissector.tls.negotiation import (
    APPLICATION,
    HANDSHAKE,
    TLS12_KEYS,
    Entry,
    Epoch,
    Negotiation,
    tls13_cipher,
    without_secrets,
)
from dissector.tls.record_ciphers import MAX_SEQUENCE, RecordCipher
from dissector.tls.record_run import APPLICATION_DATA
from dissector.tls.record_stream import RecordStream
from dissector.tls.tls_summary import Reason

ENTRY_RANGES = ((0, 1 << 12), (1 << 12, 1 << 16), (1 << 16, 10_000_000))
"""
Ranges of positions in a connection to search, one after the other with all lines of the key log,
for ciphers with costly trials of sequence numbers.
"""

CCM_TRIALS = 8
"""Number of sequence numbers of AES-CCM with the cost of one of another cipher."""

RESYNC_TRIALS = 1 << 19
"""Limit of trials for a connection with a captured hello, beside those for lost bytes."""

ENTRY_TRIALS = 20
"""Fixed cost of trying a line of the key log, in trials."""

MAX_GENERATIONS = 8
"""Maximum number of lost KeyUpdates considered."""

FEW_ENTRIES = 64
"""Maximum number of candidate lines for which each generation of keys is considered."""

MAX_ENTRY_ATTEMPTS = 4
"""Number of records of a direction tried with the lines of a key log."""

MIN_RECORD_BYTES = 22
"""The shortest encrypted record."""

UNKNOWN_RECORDS = 1 << 16
"""Maximum number of lost records in a gap of unknown length, if each one costs."""

_SMALL_NONCE = 1 << 32


class RecordFinder:
    """
    Finds the keys and sequence number of records of one connection.

    Attributes:
        resyncs: Number of successful searches.
    """

    def __init__(self, negotiation: Negotiation) -> None:
        self.resyncs = 0
        self._facts = negotiation
        self._trials = 0
        self._has_hello = False
        self._is_tls12 = False

    def locate(self, stream: RecordStream, header: bytes, body: bytes, keys: KeyLog) -> bool:
        """Set the stream's cipher to the keys and sequence number of a record, if found."""
        if self._facts.is_tls13 and header[0] != APPLICATION_DATA:
            return False
        if not self._has_hello and self._facts.client_hello is not None:
            self._has_hello = True
            self._trials = RESYNC_TRIALS
        if self._has_hello and not stream.attempts:
            self._trials += 2 * (stream.lost_bytes or 0) // MIN_RECORD_BYTES
        if self._has_hello:
            return self._locate(stream, header, body, keys)
        self._trials = keys.search_trials
        found = self._locate(stream, header, body, keys)
        keys.search_trials = self._trials
        return found

    def _locate(self, stream: RecordStream, header: bytes, body: bytes, keys: KeyLog) -> bool:
        before, before_epoch = stream.cipher, stream.epoch
        first = 0 if before is None else before.sequence
        found = (
            self._locate_known(stream, header, body, keys)
            if before is not None
            else self._locate_unknown(stream, header, body, keys)
        )
        if found is None:
            return False
        self.resyncs += 1
        stream.cipher, stream.epoch = found
        stream.reason = None
        stream.is_certain = True
        stream.attempts = 0
        if stream.carries_data:
            is_same = before is not None and before_epoch == stream.epoch
            skipped = found[0].sequence - (first if is_same else 0)
            lost = stream.lost_bytes if is_same else None
            if skipped or is_same:
                missing = _plain_lost(found[0], skipped, lost, len(body))
                stream.add_gap(missing, *stream.held.newest_packet())
        stream.lost_bytes = 0
        return True

    def is_hopeless(self, stream: RecordStream) -> bool:
        """Return whether no more records should be tried."""
        return stream.cipher is None and (
            self._is_tls12 or stream.attempts + 1 >= MAX_ENTRY_ATTEMPTS
        )

    def reason(self, keys: KeyLog) -> Reason:
        """Return why the search failed."""
        if not keys:
            return without_secrets(keys)
        facts = self._facts
        if not facts.client_random or not (facts.is_tls13 or facts.server_hello):
            return Reason.NO_HELLOS
        if keys.has_line(facts.client_random):
            return Reason.TAG_MISMATCH
        return facts.reason(keys)

    def renew(self, stream: RecordStream) -> None:
        """Restart with a grown key log."""
        stream.attempts = 0
        self._is_tls12 = False

    def _locate_known(
        self, stream: RecordStream, header: bytes, body: bytes, keys: KeyLog
    ) -> tuple[RecordCipher, Epoch] | None:
        """Try the keys in use with higher sequence numbers, then the keys that follow them."""
        cipher, epoch = stream.cipher, stream.epoch
        if cipher is None or epoch is None:
            return None
        lost = stream.lost_bytes
        count = UNKNOWN_RECORDS if lost is None else lost // MIN_RECORD_BYTES + 2
        if self._find(cipher, header, body, cipher.sequence, count):
            return cipher, epoch
        if epoch.kind == TLS12_KEYS or stream.role is None:
            return None
        start = epoch.generation + 1 if epoch.kind == APPLICATION else 0
        for generation in range(start, start + MAX_GENERATIONS):
            following = Epoch(APPLICATION, generation)
            later = self._facts.cipher(stream.role, following, keys)
            if later is not None and self._find(later, header, body, 0, count):
                return later, following
        return None

    def _locate_unknown(
        self, stream: RecordStream, header: bytes, body: bytes, keys: KeyLog
    ) -> tuple[RecordCipher, Epoch] | None:
        facts = self._facts
        if facts.server_hello is not None and not facts.is_tls13:
            if stream.role is None:
                return None
            epoch = Epoch(TLS12_KEYS)
            cipher = facts.cipher(stream.role, epoch, keys)
            if cipher is not None and self._find(cipher, header, body, 0, UNKNOWN_RECORDS):
                return cipher, epoch
            return None
        self._note_explicit_nonce(stream, body)
        if self._is_tls12 or header[0] != APPLICATION_DATA:
            return None
        return self._enter(stream, header, body, keys)

    def _note_explicit_nonce(self, stream: RecordStream, body: bytes) -> None:
        """Recognise AES-GCM of TLS 1.2: its records begin with a counting nonce."""
        if self._facts.client_random or len(body) < 24:
            return
        explicit = int.from_bytes(body[:8], "big")
        if explicit < _SMALL_NONCE or explicit - 1 == stream.last_explicit:
            self._is_tls12 = True
        stream.last_explicit = explicit

    def _enter(
        self, stream: RecordStream, header: bytes, body: bytes, keys: KeyLog
    ) -> tuple[RecordCipher, Epoch] | None:
        """Search line, suite and sequence number of a connection of TLS 1.3."""
        entries = list(self._facts.entries(stream.role, keys))
        cheap = [each for each in entries if each.suite.mode == "gcm"]
        generations = range(MAX_GENERATIONS if len(cheap) <= FEW_ENTRIES else 1)
        for generation in generations:
            for entry in cheap:
                found = self._try_entry(entry, generation, header, body, (0, MAX_SEQUENCE), keys)
                if found is not None:
                    return self._take_entry(stream, entry, found)
        for search_range in self._ranges(stream):
            for entry in entries:
                if entry.suite.mode != "gcm":
                    found = self._try_entry(entry, 0, header, body, search_range, keys)
                    if found is not None:
                        return self._take_entry(stream, entry, found)
        return None

    def _ranges(self, stream: RecordStream) -> tuple[tuple[int, int], ...]:
        """Return the ranges of sequence numbers for ciphers with costly trials."""
        if self._has_hello:
            return ((0, stream.offset // MIN_RECORD_BYTES + 2),)
        if self._facts.client_random:
            return ENTRY_RANGES
        # The second record of TLS 1.2 with AES-GCM confirms it.
        return ((), ENTRY_RANGES, ENTRY_RANGES[:2], ())[min(stream.attempts, 3)]

    def _try_entry(
        self,
        entry: Entry,
        generation: int,
        header: bytes,
        body: bytes,
        search_range: tuple[int, int],
        keys: KeyLog,
    ) -> tuple[RecordCipher, Epoch] | None:
        is_update = entry.epoch.kind == HANDSHAKE and generation
        if is_update or not self._spend(ENTRY_TRIALS):
            return None
        epoch = Epoch(entry.epoch.kind, generation)
        cipher = tls13_cipher(entry.suite, entry.client_random, entry.role, epoch, keys)
        first, end = search_range
        if cipher is None or not self._find(cipher, header, body, first, end - first):
            return None
        return cipher, epoch

    def _take_entry(
        self, stream: RecordStream, entry: Entry, found: tuple[RecordCipher, Epoch]
    ) -> tuple[RecordCipher, Epoch]:
        self._facts.enter(entry)
        stream.role = entry.role
        return found

    def _find(
        self, cipher: RecordCipher, header: bytes, body: bytes, first: int, count: int
    ) -> bool:
        """Set the cipher to the sequence number of a record, if it can be found."""
        if cipher.suite.mode == "gcm" and cipher.suite.is_tls13:
            count = MAX_SEQUENCE
            cost = ENTRY_TRIALS
        else:
            cost = CCM_TRIALS if _is_ccm13(cipher) else 1
            count = min(count, self._trials * cost)
        sequence = cipher.find(header, body, first, count) if count > 0 else None
        if cost != ENTRY_TRIALS:
            tried = count if sequence is None else sequence - first + 1
            self._spend(tried // cost)
        if sequence is None:
            return False
        cipher.sequence = sequence
        return True

    def _spend(self, trials: int) -> bool:
        self._trials -= trials
        return self._trials >= 0


def _is_ccm13(cipher: RecordCipher) -> bool:
    return cipher.suite.mode == "ccm" and cipher.suite.is_tls13


def _plain_lost(
    cipher: RecordCipher, records: int, lost_bytes: int | None, body_bytes: int
) -> int | None:
    """Return the amount of data in the lost records; None if unknown."""
    plain = cipher.plain_bytes(body_bytes)
    if lost_bytes is None or plain is None:
        return None
    length = lost_bytes - records * (5 + body_bytes - plain)
    return length if length >= 0 else None
