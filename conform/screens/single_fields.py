"""What messages say once in columns: throttle time, session of a Fetch, its replica, and more."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.screened_columns import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Bools,
    FetchSessions,
    ScreenedRows,
)
from conform.registry.single_values import NO_REPLICA, SingleValues
from conform.registry.usual_values import is_answered_fetch
from dissector.engine.tape.tape import Tape
from dissector.protocol.context import per_schemas
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.headers import FETCH
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import FieldRef, programs

Ints: TypeAlias = NDArray[np.int64]

_REQUESTED_ID, _EPOCH, _FORGOTTEN, _ANSWERED_ID, _ERROR, _REPLICA, _THROTTLE = range(7)

_OF_FETCH = {
    ("request", "session_id"): _REQUESTED_ID,
    ("request", "session_epoch"): _EPOCH,
    ("request", "forgotten_topics_data"): _FORGOTTEN,
    ("response", "session_id"): _ANSWERED_ID,
    ("response", "error_code"): _ERROR,
    ("request", "replica_id"): _REPLICA,
    ("request", "replica_state.replica_id"): _REPLICA,
}
_OF_ALL_APIS = {("response", "throttle_time_ms"): _THROTTLE}
_PLACES = _THROTTLE + 1


class SingleFields:
    """
    These fields of each exchange of a window; their defaults without a value.

    Attributes:
        is_refused: Whether the response has the error UNSUPPORTED_VERSION, anywhere.
    """

    def __init__(self, exchanges: int) -> None:
        self._values = np.zeros((_PLACES, exchanges), np.int64)
        self._values[_EPOCH] = FINAL_EPOCH
        self._values[_REPLICA] = NO_REPLICA
        self.is_refused = np.zeros(exchanges, np.bool_)

    def read(self, tape: Tape, rows: Ints) -> None:
        """Take the fields on a tape, whose messages are of some exchanges."""
        places = _places_of(len(programs().field_refs))
        at = np.flatnonzero(places[tape.field] >= 0)
        self._values[places[tape.field[at]], rows[tape.message[at]]] = tape.value[at]
        at = np.flatnonzero(tape.value == UNSUPPORTED_VERSION)
        at = at[_are_errors(len(programs().field_refs))[tape.field[at]]]
        self.is_refused[rows[tape.message[at]]] = True

    def values(self) -> list[SingleValues]:
        """Return the values of each exchange that rules read."""
        columns = self._values[_THROTTLE], self.is_refused, self._values[_REPLICA]
        return list(map(SingleValues, *(each.tolist() for each in columns)))

    def sessions(self, rows: ScreenedRows) -> FetchSessions:
        """Return the sessions of exchanges."""
        session_id, epoch, forgotten, answered_id, error, replica_id, _ = self._values
        exists = (session_id != 0) | (answered_id != 0)
        exists |= (epoch != INITIAL_EPOCH) & (epoch != FINAL_EPOCH)
        is_known = exists & (forgotten <= 0) & (error == 0)
        is_known &= rows.is_plain & is_answered_fetch(rows)
        is_replica = replica_id > NO_REPLICA
        return FetchSessions(session_id, epoch, answered_id, exists, is_known, is_replica)


@per_schemas
def _places_of(count: int) -> NDArray[np.int8]:
    """Return the place of the first `count` fields; -1 for all others."""
    return np.array([_place(ref) for ref in programs().field_refs[:count]], np.int8)


@per_schemas
def _are_errors(count: int) -> Bools:
    """Return which of the first `count` fields are error codes of responses."""
    refs = programs().field_refs[:count]
    return np.array([ref is not None and _is_error(ref) for ref in refs], np.bool_)


def _is_error(ref: FieldRef) -> bool:
    return ref.kind == "response" and meaning_of(ref.declared).role is Role.ERROR


def _place(ref: FieldRef | None) -> int:
    if ref is None:
        return -1
    of_fetch = _OF_FETCH if ref.key == FETCH else {}
    return {**of_fetch, **_OF_ALL_APIS}.get((ref.kind, ref.path), -1)
