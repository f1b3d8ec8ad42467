"""
The secrets of logins, which are recorded as asterisks.

Source: KIP-43 (SaslHandshake, tokens without headers), KIP-152 (SaslAuthenticate).
"""

from __future__ import annotations

import struct

from dissector.protocol.apis import api
from dissector.protocol.embedded.sasl_tokens import token_secrets
from dissector.protocol.headers import SASL_AUTHENTICATE, SASL_HANDSHAKE
from dissector.protocol.messages import Message, decode_request, decode_response
from record.relay.frame_splitter import SIZE_BYTES

LOGINS = frozenset((SASL_HANDSHAKE, SASL_AUTHENTICATE))

_GSSAPI = 0x60
"""The first byte of a Kerberos token (RFC 2743, 3.1)."""
_MAX_TOKEN_BYTES = 1 << 20
_KEY_AND_VERSION = struct.Struct(">hh")
_FULLY_SHOWN = ("GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms whose tokens are no secrets but for the parts that `token_secrets` knows."""


def is_request(head: bytes) -> bool:
    """Return whether a frame, of which `head` are the first bytes, has the header of a request."""
    if len(head) < SIZE_BYTES + 8:
        return False
    key, version = _KEY_AND_VERSION.unpack_from(head, SIZE_BYTES)
    found = api(key)
    # A version that is newer than all we know is still a request; a text is none.
    return found is not None and 0 <= version <= found.request.versions.high + 8


def is_kerberos(head: bytes) -> bool:
    """Return whether a frame begins a Kerberos login without a handshake, as clients of 0.9 do."""
    size = int.from_bytes(head[:SIZE_BYTES], "big")
    return size <= _MAX_TOKEN_BYTES and head[SIZE_BYTES : SIZE_BYTES + 1] == bytes((_GSSAPI,))


class Login:
    """
    The login of a client, as far as its frames show it.

    Attributes:
        sends_tokens: Whether the next frames may be tokens without headers.
    """

    def __init__(self) -> None:
        self.sends_tokens = False
        self._mechanism = ""

    def note_handshake(self, frame: bytes) -> None:
        """Note the mechanism in a SaslHandshake request, with its size."""
        request = decode_request(frame[SIZE_BYTES:])
        if request.body is not None:
            self._mechanism = str(request.body.mechanism)
            self.sends_tokens = request.api_version == 0

    def blank_request(self, frame: bytes) -> bytes:
        """Return a SaslAuthenticate request without its secrets, of the same length."""
        return self._blank_field(frame, decode_request(frame[SIZE_BYTES:]), from_client=True)

    def blank_response(self, frame: bytes, version: int) -> bytes:
        """Return a SaslAuthenticate response without its secrets, of the same length."""
        response = decode_response(frame[SIZE_BYTES:], SASL_AUTHENTICATE, version)
        return self._blank_field(frame, response, from_client=False)

    def blank_token(self, frame: bytes, *, from_client: bool) -> bytes:
        """Return a token without a header without its secrets, of the same length."""
        token = frame[SIZE_BYTES:]
        return frame[:SIZE_BYTES] + self._blank(token, from_client=from_client)

    def _blank_field(self, frame: bytes, message: Message, *, from_client: bool) -> bytes:
        if message.body is None:  # not readable: what is not known may be the secret
            start = SIZE_BYTES + 8
            return frame[:start] + b"*" * (len(frame) - start)
        token = message.body.auth_bytes or b""
        return frame.replace(token, self._blank(token, from_client=from_client)) if token else frame

    def _blank(self, token: bytes, *, from_client: bool) -> bytes:
        blanked = token
        for each in token_secrets(token, from_client=from_client):
            blanked = blanked.replace(each, b"*" * len(each))
        is_known = not from_client or self._mechanism in _FULLY_SHOWN
        return blanked if blanked != token or is_known else _blank_unknown(token)


def _blank_unknown(token: bytes) -> bytes:
    """Blank a token of which nothing is known, such as that of a company's own mechanism."""
    return b"*" * len(token)
