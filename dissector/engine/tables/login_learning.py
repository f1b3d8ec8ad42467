"""
Learns the secrets that logins show.

They are in raw SASL tokens, in SaslAuthenticate, and in the APIs of delegation tokens.

Source: RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER), KIP-48 (delegation tokens).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np

from dissector.engine.tables.exchange_table import Exchanges, Frames
from dissector.engine.tables.logins import Logins
from dissector.protocol.messages import decode_request, decode_response

_SASL_AUTHENTICATE = 36
_KEYS = (_SASL_AUTHENTICATE, 38, 39, 40, 41)
"""SaslAuthenticate; CreateDelegationToken, Renew-, Expire- and DescribeDelegationToken."""


def learn(logins: Logins, table: Exchanges) -> None:
    """Learn the secrets that the logins of a window show."""
    is_login = table.token | np.isin(table.api_key, _KEYS)
    for row in np.flatnonzero(is_login).tolist():
        secrets = list(_secrets_of(table, row))
        if secrets:
            logins.add(int(table.connection[row]), secrets)


def _secrets_of(table: Exchanges, row: int) -> Iterator[bytes]:
    from dissector.protocol.embedded.sasl_tokens import token_secrets  # few captures need it

    request, response = (_frame(table, each, row) for each in (table.request, table.response))
    if table.token[row]:
        yield from token_secrets(request, from_client=True)
        yield from token_secrets(response, from_client=False)
        return
    asked = decode_request(request)
    answered = decode_response(response, asked.api_key, asked.shown_version)
    for message, from_client in ((asked, True), (answered, False)):
        body: Any = message.body or {}
        if asked.api_key == _SASL_AUTHENTICATE:
            yield from token_secrets(body.get("auth_bytes") or b"", from_client=from_client)
        else:
            for each in (body, *(body.get("tokens") or ())):
                yield from _hmac_forms(each.get("hmac") or b"")


def _frame(table: Exchanges, frames: Frames, row: int) -> bytes:
    return table.frame(frames, row) or b""


def _hmac_forms(hmac: bytes) -> Iterator[bytes]:
    """Yield the HMAC of a delegation token as bytes, and as the password that logins use."""
    if hmac:
        yield from (hmac, base64.b64encode(hmac))
