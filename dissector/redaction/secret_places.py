"""
Where a capture holds secrets: fields that every output masks, and that hold more than a blank.

`record` blanks secrets with asterisks; other programs with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from dissector.engine.fields.field_frame import FieldTable
from dissector.engine.fields.field_reader import FieldReader
from dissector.engine.fields.message_places import SIDES
from dissector.engine.reading.capture import Capture
from dissector.engine.tables.arrow import gather_bytes
from dissector.engine.tables.column_types import Slices
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.protocol.embedded.sasl_tokens import MASK, token_secrets

_TOKENS = {("SaslAuthenticate", "auth_bytes"), ("SaslToken", "token")}
"""API and field of SASL tokens: names are no secrets, and are not blanked."""

_Key: TypeAlias = tuple[int, str, int, int]
"""Message, path, item and offset of a field."""


class SecretPlace(NamedTuple):
    """
    A field with a secret.

    Attributes:
        packet: The packet that completed its message, from 1.
        api: Name of the API.
        kind: `request` or `response`.
        field: Path of the field.
        size: Bytes of the field.
    """

    packet: int
    api: str
    kind: str
    field: str
    size: int


class SecretPlaces:
    """Finds the secrets of a capture, window by window."""

    def __init__(self, capture: Capture) -> None:
        """Begin a pass over a capture."""
        self._masked = FieldReader(capture, show_secrets=False)
        self._shown = FieldReader(capture, show_secrets=True)

    def places(self, table: Exchanges) -> Iterator[SecretPlace]:
        """Yield the secrets in the exchanges of a window, in their order."""
        places = dict[_Key, SecretPlace]()
        for each in self._masked.tables(table):
            masked = _masked_rows(each)
            places |= zip(_keys(each, masked), _places(each, masked), strict=True)
        if not places:
            return
        contents = dict[_Key, tuple[str, bytes | None]]()
        for each in self._shown.tables(table):
            contents |= _contents(each, places)
        for key, place in places.items():
            if place.size > 0 and not _is_blank(place, *contents.get(key, ("", None))):
                yield place


def _masked_rows(table: FieldTable) -> Ints:
    """Return the fields whose text is the mask."""
    text = table.columns.text
    rows = np.flatnonzero((text.start != NONE) & (text.length == len(MASK)))
    _, found = gather_bytes(Slices(text.start[rows], text.length[rows], text.buffers))
    is_mask = found.reshape(-1, len(MASK)) == np.frombuffer(MASK.encode(), np.uint8)
    masked: Ints = rows[is_mask.all(axis=1)]
    return masked


def _keys(table: FieldTable, rows: Ints) -> Iterator[_Key]:
    columns = table.columns
    numbers = table.messages.number[columns.message[rows]].tolist()
    paths = (table.names.paths_and_types[name][0] for name in columns.name[rows].tolist())
    items, offsets = columns.item[rows].tolist(), columns.offset[rows].tolist()
    return zip(numbers, paths, items, offsets, strict=True)


def _places(table: FieldTable, rows: Ints) -> Iterator[SecretPlace]:
    columns, messages = table.columns, table.messages
    for row, message in zip(rows.tolist(), columns.message[rows].tolist(), strict=True):
        path, _ = table.names.paths_and_types[columns.name[row]]
        packet, kind = int(messages.packet[message]) + 1, SIDES[messages.side[message]]
        api = messages.api.value(message)
        yield SecretPlace(packet, api, kind, path, int(columns.length[row]))


def _contents(
    table: FieldTable, wanted: Mapping[_Key, object]
) -> Iterator[tuple[_Key, tuple[str, bytes | None]]]:
    """Yield type and text of some fields."""
    columns = table.columns
    is_asked = np.isin(table.messages.number, [number for number, *_ in wanted])
    rows = np.flatnonzero(is_asked[columns.message])
    for row, key in zip(rows.tolist(), _keys(table, rows), strict=True):
        if key in wanted:
            _, type_name = table.names.paths_and_types[columns.name[row]]
            yield key, (type_name, columns.text.value(row))


def _is_blank(place: SecretPlace, type_name: str, content: bytes | None) -> bool:
    """Return whether a masked field holds no secret; one that was not read may hold any."""
    if content is None:
        return False
    is_hex = type_name.removeprefix("[]") == "bytes"
    data = bytes.fromhex(content.decode()) if is_hex else content
    if (place.api, place.field) in _TOKENS:
        secrets = token_secrets(data, from_client=place.kind == "request")
        if secrets or place.kind == "response":
            return not any(map(_holds_something, secrets))
    return not _holds_something(data)


def _holds_something(data: bytes) -> bool:
    return bool(data.strip(b"*") and data.strip(b"\0"))
