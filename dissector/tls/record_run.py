"""
Runs of records of data, which almost all records are: decrypted in one loop, in advance.

A run changes nothing until a stream takes it, so it may be taken in part.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass

from dissector.tls.record_ciphers import UNVERIFIED, RecordCipher

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE_RECORD, APPLICATION_DATA = 20, 21, 22, 23

HEADER_BYTES = 5
MAX_BODY_BYTES = (1 << 14) + 2048
"""Longest record body of TLS 1.2 (RFC 5246 section 6.2.3); records of TLS 1.3 are shorter."""

HEADER = struct.Struct(">BHH")
"""Content type, version and length of the body. Source: RFC 8446, section 5.1."""


@dataclass(slots=True, eq=False, repr=False)
class RecordRun:
    """
    The complete records of data at the beginning of some bytes.

    Attributes:
        data: The bytes.
        held: Number of these received before the run.
        stops: The end of each record, as an offset in `data`.
        contents: The plaintext of each record.
        valid_bytes: With more bytes of `data` another record, or none, is complete: one that does
            not verify or is not data.
    """

    data: bytes
    held: int
    stops: list[int]
    contents: list[bytes]
    valid_bytes: int

    def cut(self, size: int) -> None:
        """Keep the records that are complete with this many bytes."""
        if size < len(self.data):
            count = bisect_right(self.stops, size)
            del self.stops[count:], self.contents[count:]
            self.data = self.data[:size]

    @property
    def used(self) -> int:
        """The number of bytes in records."""
        return self.stops[-1] if self.stops else 0


def read_run(cipher: RecordCipher, data: bytes, held: int) -> RecordRun:
    """Decrypt the records of data at the beginning of some bytes; the cipher does not change."""
    stops, contents = list[int](), list[bytes]()
    run = RecordRun(data, held, stops, contents, len(data))
    open_record, sequence = cipher.open, cipher.sequence
    at, last = 0, len(data) - HEADER_BYTES
    while at <= last:
        kind, version, length = HEADER.unpack_from(data, at)
        start = at + HEADER_BYTES
        if kind != APPLICATION_DATA or version >> 8 != 3 or length > MAX_BODY_BYTES:
            run.valid_bytes = start - 1
            break
        stop = start + length
        if stop > len(data):
            break
        try:
            kind, content = open_record(data[at:start], data[start:stop])
        except UNVERIFIED:
            kind = 0
        if kind != APPLICATION_DATA:
            run.valid_bytes = stop - 1
            break
        stops.append(stop)
        contents.append(content)
        at = stop
    cipher.sequence = sequence
    return run


def needed_bytes(rest: bytes) -> int:
    """Return the size of the record that begins here, or of its header if that is not complete."""
    return (
        HEADER_BYTES + int.from_bytes(rest[3:5], "big")
        if len(rest) >= HEADER_BYTES
        else HEADER_BYTES
    )
