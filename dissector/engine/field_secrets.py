"""
Which values of configuration entries are secret, found among rows of the tape.

An entry is sensitive if its name says so, if it is marked so, or if the entry around it is.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges import Exchanges, Ints
from dissector.engine.tape import Tape
from dissector.protocol.apis import Kind, api
from dissector.protocol.embedded.secrets import is_config, is_sensitive
from dissector.protocol.program import Place
from dissector.protocol.schema import Field

_NOTHING, _NAME, _MARK, _VALUE = range(4)

_ROLES = {"name": _NAME, "is_sensitive": _MARK, "value": _VALUE}


def roles_of(places: list[Place | None]) -> NDArray[np.uint8]:
    """Tell of fields what they are in an entry of a configuration."""
    return np.array([_role(each) for each in places], np.uint8)


def secret_values(table: Exchanges, tape: Tape, roles: NDArray[np.uint8]) -> Ints:
    """
    Return the rows of a tape that hold secret values of configuration entries.

    Args:
        table: What the messages are of.
        tape: Their fields.
        roles: What `roles_of` tells of each field number.
    """
    rows = np.flatnonzero(roles[tape.field])
    if not len(rows):
        return rows
    role = roles[tape.field[rows]]
    message = tape.message[rows].astype(np.int64) << 32
    entry, outer = message | tape.item[rows], message | tape.around[rows]
    names = np.flatnonzero(role == _NAME)
    told = [_is_secret_name(table, tape, row) for row in rows[names].tolist()]
    marked = (role == _MARK) & (tape.value[rows] != 0)
    found = np.concatenate((entry[names[np.array(told, np.bool_)]], entry[marked]))
    inside = entry[names[np.isin(outer[names], found)]]
    while not np.isin(inside, found).all():
        found = np.union1d(found, inside)
        inside = entry[names[np.isin(outer[names], found)]]
    hidden = (role == _VALUE) & (tape.value[rows] >= 0) & np.isin(entry, found)
    out: Ints = rows[hidden]
    return out


def _is_secret_name(table: Exchanges, tape: Tape, row: int) -> bool:
    return _is_sensitive(table.bytes_at(int(tape.start[row]), max(int(tape.value[row]), 0)))


@lru_cache(maxsize=4096)
def _is_sensitive(name: bytes) -> bool:
    return is_sensitive(name.decode("utf-8", "surrogateescape"))


def _role(place: Place | None) -> int:
    if place is None or place.key < 0:
        return _NOTHING
    around, _, name = place.path.rpartition(".")
    return _ROLES.get(name, _NOTHING) if around in _entries(place.key, place.kind) else _NOTHING


@cache
def _entries(key: int, kind: Kind) -> frozenset[str]:
    """Return the paths of the arrays of configuration entries in a message."""
    found = api(key)
    return frozenset(_entry_paths(found.schema(kind).fields, "")) if found else frozenset()


def _entry_paths(fields: tuple[Field, ...], around: str) -> list[str]:
    paths = [around] if is_config(fields) else []
    for each in fields:
        paths += _entry_paths(each.fields, f"{around}.{each.name}".removeprefix("."))
    return paths
