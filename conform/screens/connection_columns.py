"""What the state of connections says of the exchanges of a window, in columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.evidence.observation import CaptureState, ConnectionState
from conform.registry.screened_columns import Bools, ScreenedRows
from conform.screens.offer_columns import known_offers
from conform.screens.plain_batches import PlainBatches
from dissector.capture.columns import unique
from dissector.engine.tables.exchange_table import ANSWERED, Exchanges
from dissector.protocol.headers import SASL_AUTHENTICATE, SASL_HANDSHAKE

Ints: TypeAlias = NDArray[np.int64]


def screened_rows(
    table: Exchanges,
    connections: Mapping[int, ConnectionState],
    capture_state: CaptureState,
    batches: PlainBatches,
    is_logged: Bools,
) -> ScreenedRows:
    """
    Return the columns of a window for screens; exchanges of a request log have no records.

    The states are those before the window; they record here which connections log in.
    """
    numbers, index = np.unique(table.connection, return_inverse=True)
    states = [connections[number] for number in numbers.tolist()]
    is_login = table.token | np.isin(table.api_key, (SASL_HANDSHAKE, SASL_AUTHENTICATE))
    for each in unique(index[is_login]).tolist():
        states[each].has_login = True
    last_answered = np.array([each.last_answered[0] for each in states], np.int64)
    return ScreenedRows(
        table,
        is_complete=_flags([not each.incomplete_reason for each in states])[index],
        has_login=_flags([each.has_login for each in states])[index],
        is_in_order=_in_order(table, index, last_answered)[index],
        is_plain=batches.is_plain & ~is_logged,
        is_idempotent=batches.is_idempotent,
        is_transactional=batches.is_transactional,
        offers=known_offers(states, index, capture_state),
    )


def _flags(values: list[bool]) -> Bools:
    return np.array(values, np.bool_)


def _in_order(table: Exchanges, index: Ints, last_answered: Ints) -> Bools:
    """Return for each connection whether its responses are in the order of their requests."""
    answered = np.flatnonzero(table.status == ANSWERED)
    # Answers of a connection one after another, in the order of the window.
    rows = answered[np.argsort(index[answered], kind="stable")]
    connection, offset = index[rows], table.request.offset[rows]
    is_first = np.diff(connection, prepend=-1) != 0
    before = np.where(is_first, last_answered[connection], np.roll(offset, 1))
    is_in_order = np.ones(len(last_answered), np.bool_)
    is_in_order[connection[offset < before]] = False
    return is_in_order
