"""
Rounds of SASL logins: what an answer of the broker means to the login.

A round without an error need not be the last. Only the mechanism decides: SCRAM ends with the
signature of the server, OAUTHBEARER and GSSAPI with an empty answer; OAUTHBEARER refuses by a JSON
object in an answer without an error.

Source: RFC 4616 (PLAIN), RFC 5802 section 3 (SCRAM), RFC 7628 section 3.2.2 (OAUTHBEARER), RFC 4752
section 3.1 (GSSAPI); KIP-43, KIP-152, KIP-255, KIP-368.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import ANSWERED, Exchanges
from dissector.protocol.embedded.sasl_tokens import decode_token

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


class Result(Enum):
    """What an answer means: the login is over, refused, goes on, or none of these is sure."""

    DONE = 0
    REFUSED = 1
    MORE = 2
    UNKNOWN = 3


def round_result(mechanism: str, answer: bytes, lifetime_ms: int = 0) -> Result:
    """
    Return the meaning of an answer without an error.

    Args:
        mechanism: From the handshake; empty if unknown.
        answer: Token of the broker.
        lifetime_ms: Lifetime of the session, which only the last answer has (KIP-368).
    """
    if lifetime_ms > 0 or mechanism == "PLAIN":
        return Result.DONE
    if mechanism.startswith("SCRAM-"):
        is_error = answer[:2] == b"e="
        return Result.DONE if answer[:2] == b"v=" else Result.REFUSED if is_error else Result.MORE
    if mechanism == "OAUTHBEARER":
        return Result.REFUSED if answer else Result.DONE
    if mechanism == "GSSAPI":
        return Result.MORE if answer else Result.DONE
    return Result.UNKNOWN


def refusal_of(mechanism: str, answer: bytes) -> str:
    """Return the error in an answer that refuses a login: `invalid_token`."""
    words = decode_token(answer, mechanism, from_client=False).text.partition(" error ")[2]
    return words if words and " " not in words else "refused"


def login_rows(
    table: Exchanges, has_open: bool, is_open: Callable[[int], bool]
) -> NDArray[np.bool_]:
    """
    Return SASL exchanges, and the first answered exchange after those of each connection.

    Args:
        table: The exchanges of a window.
        has_open: Whether any login is open since an earlier window.
        is_open: Returns whether that of a connection is, by its position.
    """
    is_sasl = np.isin(table.api_key, (SASL_HANDSHAKE, SASL_AUTHENTICATE)) | table.token
    rows = np.flatnonzero(is_sasl | (table.status == ANSWERED))
    if not len(rows) or not (has_open or is_sasl.any()):
        return is_sasl
    rows = rows[np.argsort(table.connection[rows], kind="stable")]
    connection, of_login = table.connection[rows], is_sasl[rows]
    is_first = np.append(True, connection[1:] != connection[:-1])
    is_next = ~of_login & ~is_first & np.append(False, of_login[:-1])
    if has_open:
        begins = np.flatnonzero(is_first & ~of_login)
        is_next[begins] = [is_open(each) for each in connection[begins].tolist()]
    is_sasl[rows[is_next]] = True
    return is_sasl
