"""
Finds secret values of configuration entries and texts with credentials among the rows of the tape.

The rules of `dissector.protocol.embedded.masking`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import unique
from dissector.engine.tables.exchange_table import Exchanges, Ints
from dissector.engine.tape.tape import Tape
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.embedded.masking import setting_name
from dissector.protocol.embedded.secrecy.credentials import holds_credential
from dissector.protocol.embedded.secrecy.settings import PASSWORD_TYPE, is_sensitive
from dissector.protocol.program import FieldRef
from dissector.protocol.schema import Field

_NO_ROLE, _NAME, _FLAGGED_NAME, _SENSITIVE_FLAG, _TYPE, _VALUE = range(6)
"""
Role of a field in a configuration entry. A flagged entry (one with `is_sensitive`, or a field
`key`) has a name that Kafka need not know.
"""

_ROLES = {"is_sensitive": _SENSITIVE_FLAG, "config_type": _TYPE, "value": _VALUE}


def roles_of(field_refs: list[FieldRef | None]) -> NDArray[np.uint8]:
    """Return the role of each field in a configuration entry."""
    return np.array([_role(each) for each in field_refs], np.uint8)


def secret_value_rows(table: Exchanges, tape: Tape, roles: NDArray[np.uint8]) -> Ints:
    """
    Return the rows of a tape that hold secret values of configuration entries.

    Args:
        table: The exchanges of the messages.
        tape: The fields of the messages.
        roles: `roles_of` the field numbers.
    """
    rows = np.flatnonzero(roles[tape.field])
    if not len(rows):
        return rows
    role = roles[tape.field[rows]]
    message = tape.message[rows].astype(np.int64) << 32
    entry, outer = message | tape.item[rows], message | tape.around[rows]
    names = np.flatnonzero((role == _NAME) | (role == _FLAGGED_NAME))
    has_sensitive_name = [
        _is_sensitive(_content(table, tape, row), is_flagged)
        for row, is_flagged in zip(
            rows[names].tolist(), (role[names] == _FLAGGED_NAME).tolist(), strict=True
        )
    ]
    is_sensitive_entry = (role == _SENSITIVE_FLAG) & (tape.value[rows] != 0)
    is_sensitive_entry |= (role == _TYPE) & (tape.value[rows] == PASSWORD_TYPE)
    sensitive = np.concatenate(
        (entry[names[np.array(has_sensitive_name, np.bool_)]], entry[is_sensitive_entry])
    )
    nested = entry[names[np.isin(outer[names], sensitive)]]
    while not np.isin(nested, sensitive).all():
        sensitive = unique(np.concatenate((sensitive, nested)))
        nested = entry[names[np.isin(outer[names], sensitive)]]
    hidden = (role == _VALUE) & (tape.value[rows] >= 0) & np.isin(entry, sensitive)
    out: Ints = rows[hidden]
    return out


def credential_rows(table: Exchanges, tape: Tape, rows: Ints, connection: Ints) -> Ints:
    """
    Return the given rows (texts or bytes) that hold a credential.

    Args:
        table: The exchanges of the messages.
        tape: The fields of the messages.
        rows: Rows of the tape.
        connection: The connection of each message.
    """
    contents = [_content(table, tape, row) for row in rows.tolist()]
    is_credential = list(map(holds_credential, contents))
    if table.logins is not None and len(table.login_signs):
        numbers = connection[tape.message[rows]].tolist()
        known = map(table.logins.of, numbers)
        is_credential = [
            holds or each.holds(content)
            for holds, each, content in zip(is_credential, known, contents, strict=True)
        ]
    out: Ints = rows[np.array(is_credential, np.bool_)]
    return out


def _content(table: Exchanges, tape: Tape, row: int) -> bytes:
    return table.bytes_at(int(tape.start[row]), max(int(tape.value[row]), 0))


@lru_cache(maxsize=4096)
def _is_sensitive(name: bytes, is_flagged: bool) -> bool:
    return is_sensitive(name.decode("utf-8", "surrogateescape"), marked=is_flagged)


def _role(ref: FieldRef | None) -> int:
    if ref is None or ref.key < 0:
        return _NO_ROLE
    parent, _, name = ref.path.rpartition(".")
    name_field, is_flagged = _setting_arrays(ref.key, ref.kind).get(parent, ("", False))
    if not name_field:
        return _NO_ROLE
    return (
        (_FLAGGED_NAME if is_flagged else _NAME)
        if name == name_field
        else _ROLES.get(name, _NO_ROLE)
    )


@per_schemas
def _setting_arrays(key: int, kind: Kind) -> dict[str, tuple[str, bool]]:
    """Return name field and flag of each array of configuration entries, by its path."""
    found = api(key)
    return dict(_find_setting_arrays(found.schema(kind).fields, "", False)) if found else {}


def _find_setting_arrays(
    fields: tuple[Field, ...], path: str, is_flagged: bool
) -> Iterator[tuple[str, tuple[str, bool]]]:
    name = setting_name(fields)
    if name is not None:
        is_flagged |= name == "key" or any(each.name == "is_sensitive" for each in fields)
        yield path, (name, is_flagged)
    for each in fields:
        inner = f"{path}.{each.name}".removeprefix(".")
        yield from _find_setting_arrays(each.fields, inner, is_flagged or name is not None)
