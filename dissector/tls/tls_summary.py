"""The known facts about a TLS connection, and its plaintext."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Reason(Enum):
    """Why a connection, or its rest, is not decrypted; the value is for people."""

    NO_KEY_LOG = "no key log"
    EMPTY_KEY_LOG = "no secret in the key log"
    NO_LINE = "no line for this connection in the key log"
    TAG_MISMATCH = "lines in the key log, but the tag does not verify"
    UNSUPPORTED_CIPHER = "cipher suite not supported"
    UNSUPPORTED_VERSION = "version not supported"
    NO_HELLOS = "hellos not captured: TLS 1.2 needs them, and no TLS 1.3 line of the key log fits"
    RENEGOTIATED = "renegotiation is not followed"
    NO_DATA = "no encrypted data"


LINES_MAY_COME = (Reason.EMPTY_KEY_LOG, Reason.NO_LINE)
"""Reasons to wait for, while a key log grows."""


class Plaintext(NamedTuple):
    """
    Plaintext of one record, or a gap.

    Attributes:
        side: Its sender, as fed.
        data: The bytes; None for a gap.
        length: Number of bytes; None for a gap of unknown length.
        time_ns: The time of the packet that completed the record.
        packet: Its number.
    """

    side: int
    data: bytes | None
    length: int | None
    time_ns: int
    packet: int


@dataclass(slots=True, eq=False, repr=False)
class TlsSummary:
    """
    A TLS connection at a glance.

    Attributes:
        version: Such as `TLS 1.3`; empty while unknown.
        suite: IANA's name of the cipher suite; empty while unknown.
        server_name: The server name in the ClientHello; empty if none.
        alpn: The application protocol that the server chose; empty if none or not visible.
        resumed: Whether it resumed a session; None while unknown.
        client_subject: The subject of the client's certificate; empty if none or not visible.
        reason: Reason why it is not decrypted; None if the captured part is decrypted.
        records: Records seen.
        decrypted: Records of any content that were decrypted.
        failed: Records that could not be decrypted although keys were there.
        plain_bytes: Bytes of plaintext.
        key_updates: Messages KeyUpdate.
        has_early_data: Whether the server accepted early data.
        renegotiated: Whether one side requested a renegotiation.
        resyncs: Number of successful resynchronisations.
    """

    version: str = ""
    suite: str = ""
    server_name: str = ""
    alpn: str = ""
    resumed: bool | None = None
    client_subject: str = ""
    reason: Reason | None = None
    records: int = 0
    decrypted: int = 0
    failed: int = 0
    plain_bytes: int = 0
    key_updates: int = 0
    has_early_data: bool = False
    renegotiated: bool = False
    resyncs: int = 0
