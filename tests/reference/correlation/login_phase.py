"""
The login by raw SASL tokens, which have no header: they follow SaslHandshake v0.

Clients of Kafka 0.9, which has no handshake, begin a connection with the tokens of Kerberos.

A frame that is no request is a token. A frame that looks like a request may be one too: its bytes
count as a token's, and so as secret, until the response to such a frame fits its request.

Source: KIP-43, KIP-152; RFC 2743, section 3.1, and RFC 4121, section 4.1 (first token of Kerberos).
"""

from __future__ import annotations

from dissector.protocol.headers import SASL_HANDSHAKE
from tests.reference.correlation import plausible_frames
from tests.reference.correlation.framer import Frame

_HANDSHAKE_V0 = SASL_HANDSHAKE.to_bytes(2, "big") + b"\0\0"
_KERBEROS = b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"
_LONGEST_TAG = 4


def is_kerberos(data: bytes | bytearray) -> bool:
    """Return whether bytes begin with a frame whose body is the first token of Kerberos."""
    size, tag = int.from_bytes(data[:4], "big", signed=True), data[4 : 5 + _LONGEST_TAG]
    if not tag.startswith(b"\x60") or len(tag) < 2:
        return False
    more = tag[1] & 0x7F if tag[1] & 0x80 else 0
    length = int.from_bytes(tag[2 : 2 + more], "big") if more else tag[1]
    begin = 4 + 2 + more
    return (
        more < _LONGEST_TAG
        and size == 2 + more + length
        and data[begin : begin + len(_KERBEROS)] == _KERBEROS
    )


class LoginPhase:
    """
    The phase of a connection.

    Attributes:
        expects_tokens: Whether the next frame of the client may be a token without a header.
        is_open: Whether no response has shown yet that the login is over.
    """

    __slots__ = ("expects_tokens", "is_open")

    def __init__(self) -> None:
        self.expects_tokens = False
        self.is_open = False

    def begin(self) -> None:
        """Expect tokens from the first frame on."""
        self.expects_tokens = self.is_open = True

    def marked(self, frame: Frame) -> Frame:
        """Return the next frame of the client, marked as a token if it is or may be one."""
        if self.expects_tokens and not plausible_frames.is_request(frame.data):
            return frame._replace(token=True)
        marked = frame._replace(in_login=self.is_open)
        self.expects_tokens = frame.data[:4] == _HANDSHAKE_V0
        self.is_open |= self.expects_tokens
        return marked

    def may_be_token(self, frame: Frame) -> bool:
        """Return whether a frame of the client is, or may be, a token."""
        return frame.token or (frame.in_login and self.is_open)

    def answer(self, request: Frame, response: Frame | None) -> None:
        """End the login if a response fits; that of another SaslHandshake proves nothing."""
        if response is None or not (request.in_login and self.is_open):
            return
        if request.data[:4] != _HANDSHAKE_V0:
            data, size = response.data, response.size
            self.is_open = not plausible_frames.fits_request(data, size, request.data)
