"""TLS clients and servers by Python's `ssl`, without sockets, with recorded flights."""

from __future__ import annotations

import base64
import datetime
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from dissector.tls.key_log import KeyLog
from dissector.tls.tls_connection import TlsConnection
from dissector.tls.tls_summary import Plaintext

CLIENT, SERVER = 0, 1
SERVER_NAME = "broker.example"
Flight = tuple[int, bytes]


@cache
def pem(kind: str, name: str) -> bytes:
    """Key and self-signed certificate in one."""
    key = (
        ec.generate_private_key(ec.SECP256R1())
        if kind == "ec"
        else rsa.generate_private_key(65537, 2048)
    )
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Orders"),
        ]
    )
    start = datetime.datetime(2020, 1, 1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + certificate.public_bytes(serialization.Encoding.PEM)


_FFDHE2048 = (
    "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695"
    "A9E13641146433FBCC939DCE249B3EF97D2FE363630C75D8F681B202AEC4617A"
    "D3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3B557135E7F57C935"
    "984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797A"
    "BC0AB182B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4"
    "AE56EDE76372BB190B07A7C8EE0A6D709E02FCE1CDF7E2ECC03404CD28342F61"
    "9172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC2EC22005"
    "C58EF1837D1683B2C6F34A26C1B2EFFA886B423861285C97FFFFFFFFFFFFFFFF"
)
"""The prime of RFC 7919 appendix A.1."""


def dh_parameters() -> str:
    """The parameters as PEM: a sequence of the prime and 2."""
    der = bytes.fromhex("30820108" + "0282010100" + _FFDHE2048 + "020102")
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN DH PARAMETERS-----\n{text}-----END DH PARAMETERS-----\n"


class Party:
    """A pair of contexts and their key log."""

    def __init__(
        self,
        folder: Path,
        *,
        version: str = "TLSv1_3",
        ciphers: str = "ALL:@SECLEVEL=0",
        suites: str = "",
        kind: str = "rsa",
        client_name: str = "",
        curve: str = "",
        alpn: str = "",
        tickets: bool = True,
    ) -> None:
        self.key_log = folder / "keys.log"
        files = {}
        for role, name in (("server", SERVER_NAME), ("client", client_name or "nobody")):
            files[role] = folder / f"{role}.pem"
            files[role].write_bytes(pem(kind, name))
        (folder / "dh.pem").write_text(dh_parameters())
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for context in (self.client, self.server):
            context.set_ciphers(ciphers)
            context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
            if alpn:
                context.set_alpn_protocols([alpn])
        self.server.load_cert_chain(files["server"])
        self.server.load_dh_params(str(folder / "dh.pem"))
        if curve:
            self.server.set_ecdh_curve(curve)
        if client_name:
            self.client.load_cert_chain(files["client"])
            self.server.verify_mode = ssl.CERT_REQUIRED
            self.server.load_verify_locations(files["client"])
        if not tickets:
            self.server.options |= ssl.OP_NO_TICKET
            self.client.options |= ssl.OP_NO_TICKET
        self.client.check_hostname = False
        self.client.verify_mode = ssl.CERT_NONE
        self.client.keylog_filename = str(self.key_log)

    def connect(
        self, messages: Iterable[tuple[int, bytes]], session: ssl.SSLSession | None = None
    ) -> RecordedConnection:
        """Connect, send messages of both sides, close."""
        return RecordedConnection(self, list(messages), session)

    def keys(self) -> KeyLog:
        """The key log so far."""
        return KeyLog([self.key_log])


@dataclass
class RecordedConnection:
    """One connection: all flights of both sides, in order."""

    party: Party
    messages: list[tuple[int, bytes]]
    session: ssl.SSLSession | None = None
    flights: list[Flight] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._bio = [ssl.MemoryBIO() for _ in range(4)]
        to_server, from_server, to_client, from_client = self._bio
        self._ends = (
            self.party.client.wrap_bio(
                to_client, from_client, server_hostname=SERVER_NAME, session=self.session
            ),
            self.party.server.wrap_bio(to_server, from_server, server_side=True),
        )
        while not (self._step(0) & self._step(1)):
            pass
        self._move(0)
        self._move(1)
        for side, content in self.messages:
            self._ends[side].write(content)
            self._move(side)
            left = len(content)
            while left:
                left -= len(self._ends[1 - side].read(left))
        self._read_all()
        self.resumed = self._ends[0].session_reused
        self.next_session = self._ends[0].session
        self.suite = self._ends[0].cipher()

    def _step(self, side: int) -> bool:
        try:
            self._ends[side].do_handshake()
            done = True
        except ssl.SSLWantReadError:
            done = False
        self._move(side)
        return done

    def _move(self, side: int) -> None:
        outgoing = self._bio[3 if side == 0 else 1]
        incoming = self._bio[0 if side == 0 else 2]
        if data := outgoing.read():
            self.flights.append((side, data))
            incoming.write(data)

    def _read_all(self) -> None:
        for side in (0, 1):
            try:
                self._ends[side].read(1)
            except ssl.SSLError:
                continue

    def sent(self, side: int) -> bytes:
        """All application data of a side."""
        return b"".join(content for each, content in self.messages if each == side)


def pieces(flights: Iterable[Flight], cut: Callable[[bytes], Iterable[bytes]]) -> list[Flight]:
    """Split flights into segments."""
    return [(side, part) for side, data in flights for part in cut(data) if part]


def decrypt(keys: KeyLog, segments: Iterable[Flight]) -> tuple[TlsConnection, list[Plaintext]]:
    """Feed segments; packets are numbered from 0, and a packet's time is 10 times its number."""
    connection = TlsConnection(keys)
    out: list[Plaintext] = []
    for packet, (side, data) in enumerate(segments):
        out += connection.feed(side, data, packet * 10, packet)
    return connection, out + connection.finish()


def content(out: Iterable[Plaintext], side: int) -> bytes:
    """The plaintext of a side."""
    return b"".join(each.data or b"" for each in out if each.side == side)
