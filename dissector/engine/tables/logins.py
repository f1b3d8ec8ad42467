"""
Secrets that the logins of a capture show, by connection: what messages repeat of them is masked.

They are learned from raw SASL tokens, SaslAuthenticate, and the APIs of delegation tokens.

Source: RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER), KIP-48 (delegation tokens).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames, Ints
from dissector.protocol.embedded.sasl_tokens import token_secrets
from dissector.protocol.login_secrets import (
    NOTHING_KNOWN,
    SIGN_BITS,
    KnownSecrets,
    SecretsOfAll,
    sign_of,
)
from dissector.protocol.messages import decode_request, decode_response

MAX_CONNECTIONS = 65_536
"""Connections with known secrets; the newest are kept."""

_SASL_AUTHENTICATE = 36
_KEYS = (_SASL_AUTHENTICATE, 38, 39, 40, 41)
"""SaslAuthenticate; CreateDelegationToken, Renew-, Expire- and DescribeDelegationToken."""

_NO_SIGNS: NDArray[np.uint8] = np.zeros(0, np.uint8)


class Logins:
    """
    The secrets of all connections.

    Attributes:
        signs: A byte for each sign, 1 where a secret has it; empty without secrets.
    """

    def __init__(self) -> None:
        self.signs = _NO_SIGNS
        self._known: dict[int, KnownSecrets] = {}
        self._all: SecretsOfAll | None = None

    def of(self, connection: int) -> KnownSecrets:
        """Return the secrets known of a connection."""
        return self._known.get(connection, NOTHING_KNOWN)

    @property
    def all(self) -> SecretsOfAll:
        """The secrets of all connections."""
        if self._all is None:
            self._all = SecretsOfAll(list(self._known.values()))
        return self._all

    def learn(self, table: Exchanges) -> None:
        """Learn the secrets that the logins of a window show."""
        is_login = table.token | np.isin(table.api_key, _KEYS)
        for row in np.flatnonzero(is_login).tolist():
            secrets = list(_secrets_of(table, row))
            if secrets:
                self._add(int(table.connection[row]), secrets)

    def retain(self, new_numbers: Ints) -> None:
        """Give connections their new numbers; NONE drops one."""
        numbers = {
            number: int(new_numbers[number]) for number in self._known if number < len(new_numbers)
        }
        self._known = {new: self._known[number] for number, new in numbers.items() if new != NONE}

    def _add(self, connection: int, secrets: list[bytes]) -> None:
        before = self._known.pop(connection, NOTHING_KNOWN)
        known = KnownSecrets((*before.secrets, *secrets))
        self._known[connection] = known
        self._all = None
        if len(self._known) > MAX_CONNECTIONS:
            del self._known[next(iter(self._known))]
        signs = self.signs if len(self.signs) else np.zeros(1 << SIGN_BITS, np.uint8)
        for form in known.forms():
            signs[sign_of(form)] = 1
        self.signs = signs


def signs_of(table: Exchanges) -> NDArray[np.uint8]:
    """Return the signs of the secrets that are known to the exchanges of a window."""
    return _NO_SIGNS if table.logins is None else table.logins.signs


def _secrets_of(table: Exchanges, row: int) -> Iterator[bytes]:
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
