"""What messages say once in columns: their throttle time, and the session of a Fetch."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.screened_columns import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSessions,
    ScreenedRows,
)
from conform.registry.usual_values import is_answered_fetch
from dissector.engine.tape.tape import Tape
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import FETCH
from dissector.protocol.program import FieldRef, programs

Ints: TypeAlias = NDArray[np.int64]

_REQUESTED_ID, _EPOCH, _FORGOTTEN, _ANSWERED_ID, _ERROR, _THROTTLE = range(6)

_OF_SESSIONS = {
    ("request", "session_id"): _REQUESTED_ID,
    ("request", "session_epoch"): _EPOCH,
    ("request", "forgotten_topics_data"): _FORGOTTEN,
    ("response", "session_id"): _ANSWERED_ID,
    ("response", "error_code"): _ERROR,
}
_OF_ALL_APIS = {("response", "throttle_time_ms"): _THROTTLE}
_PLACES = len(_OF_SESSIONS) + len(_OF_ALL_APIS)


class SingleFields:
    """These fields of each exchange of a window; their defaults without a value."""

    def __init__(self, exchanges: int) -> None:
        self._values = np.zeros((_PLACES, exchanges), np.int64)
        self._values[_EPOCH] = FINAL_EPOCH

    def read(self, tape: Tape, rows: Ints) -> None:
        """Take the fields on a tape, whose messages are of some exchanges."""
        places = _places_of(len(programs().field_refs))
        at = np.flatnonzero(places[tape.field] >= 0)
        self._values[places[tape.field[at]], rows[tape.message[at]]] = tape.value[at]

    @property
    def throttle_ms(self) -> Ints:
        """The throttle time in each response."""
        found: Ints = self._values[_THROTTLE]
        return found

    def sessions(self, rows: ScreenedRows) -> FetchSessions:
        """Return the sessions of exchanges."""
        session_id, epoch, forgotten, answered_id, error, _ = self._values
        exists = (session_id != 0) | (answered_id != 0)
        exists |= (epoch != INITIAL_EPOCH) & (epoch != FINAL_EPOCH)
        is_known = exists & (forgotten <= 0) & (error == 0)
        is_known &= rows.is_plain & is_answered_fetch(rows)
        return FetchSessions(session_id, epoch, answered_id, exists, is_known)


@per_schemas
def _places_of(count: int) -> NDArray[np.int8]:
    """Return the place of the first `count` fields; -1 for all others."""
    return np.array([_place(ref) for ref in programs().field_refs[:count]], np.int8)


def _place(ref: FieldRef | None) -> int:
    if ref is None:
        return -1
    of_session = _OF_SESSIONS if ref.key == FETCH else {}
    return {**of_session, **_OF_ALL_APIS}.get((ref.kind, ref.path), -1)
