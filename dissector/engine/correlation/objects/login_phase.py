"""
The login by raw SASL tokens, which have no header: they follow SaslHandshake v0.

A frame that is no request is a token. A frame that looks like a request may be one too: its bytes
count as a token's, and so as secret, until the response to such a frame fits its request.

Source: KIP-43, KIP-152.
"""

from __future__ import annotations

from dissector.engine.correlation.both_paths import frame_checks
from dissector.engine.correlation.objects.framer import Frame
from dissector.protocol.headers import SASL_HANDSHAKE

_HANDSHAKE_V0 = SASL_HANDSHAKE.to_bytes(2, "big") + b"\0\0"


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

    def marked(self, frame: Frame) -> Frame:
        """Return the next frame of the client, marked as a token if it is or may be one."""
        if self.expects_tokens and not frame_checks.is_request(frame.data):
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
            self.is_open = not frame_checks.fits_request(data, size, request.data)
