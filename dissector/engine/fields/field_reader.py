"""
Every field of every message as a row, in wire order, read from the tape.

Messages are ordered by the end of their exchanges, requests first. The tape reads messages that are
complete and match their declaration. All others (truncated, malformed, of an unknown API or
version, with unknown tagged fields, and Envelopes, which may hold secrets) are read by the codecs'
spans: the same rows as far as the bytes fit, then a row for each problem. The content of `records`
fields is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange_columns import api_names
from dissector.engine.fields.codec_fallback import FieldRow, fallback_columns, field_rows
from dissector.engine.fields.field_columns import merge_columns, tape_columns
from dissector.engine.fields.field_display import FieldDisplay, field_type
from dissector.engine.fields.field_frame import (
    FieldNames,
    FieldTable,
    MessageColumns,
    field_frame,
)
from dissector.engine.fields.message_places import first_steps, message_column, present_messages
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.embedded.masking import carries_messages
from dissector.protocol.program import UNKNOWN_TAG, FieldRef, programs

if TYPE_CHECKING:
    import polars

    from dissector.engine.reading.capture import Capture

Bools: TypeAlias = NDArray[np.bool_]

_END_BITS = 24
"""Low bits of a stream offset; enough to distinguish offsets within one packet."""


class FieldReader:
    """Reads the fields of each window into tables."""

    def __init__(self, capture: Capture, show_secrets: bool) -> None:
        """Begin a pass over a capture."""
        self._capture = capture
        self._show_secrets = show_secrets
        self._display = FieldDisplay(show_secrets)
        self._names: list[tuple[str, str]] = []

    def frames(
        self, table: Exchanges, max_rows: int = tape.BATCH_ROWS
    ) -> Iterator[polars.DataFrame]:
        """Yield the same as `tables`, as tables of polars."""
        return map(field_frame, self.tables(table, max_rows))

    def tables(self, table: Exchanges, max_rows: int = tape.BATCH_ROWS) -> Iterator[FieldTable]:
        """
        Yield the fields of all messages of a window, or of some of its exchanges.

        Args:
            table: The exchanges.
            max_rows: Rows of a table, unless a single message has more. Writers hold several tables
                at a time, and bound their number, not their rows.
        """
        messages = self._messages(table)
        steps = first_steps(table, messages, self._is_excluded)
        field_refs = programs().field_refs
        self._names += [
            (_display_path(each), field_type(each)) for each in field_refs[len(self._names) :]
        ]
        first = 0
        for fields_read in tape.read_in_batches(
            table.data,
            table.carry_over,
            messages.start,
            messages.start + messages.captured_bytes,
            steps,
            programs(),
            np.ones(len(field_refs), np.uint8),
            max_rows,
        ):
            chunk = messages.select(slice(first, first + len(fields_read.state)))
            first += len(chunk)
            yield self._table(table, chunk, fields_read)

    def _table(self, table: Exchanges, messages: MessageColumns, read: tape.Tape) -> FieldTable:
        """Return the fields of consecutive messages."""
        unread = read.state != tape.FITS
        unread[read.message[read.field == UNKNOWN_TAG]] = True
        # Messages that failed have no rows on the tape; messages with unknown tags do.
        if unread[read.message].any():
            read = _drop_messages(read, unread)
        display = self._display.update(programs().field_refs)
        columns = tape_columns(table, read, messages, display)
        names = FieldNames(self._names.copy())
        rows = self._fallback_rows(table, messages, unread)
        if rows:
            columns = merge_columns(columns, fallback_columns(rows, names))
        return FieldTable(messages, columns, names)

    def _messages(self, table: Exchanges) -> MessageColumns:
        """Return the messages of a window in their order."""
        row, side = present_messages(table)

        def column(name: str) -> Ints:
            return message_column(table, row, side, name)

        packet = column("packet")
        reading = self._capture.reading
        assert reading is not None
        apis = api_names(table)
        return MessageColumns(
            number=message_numbers(packet, column("offset") + column("size"), side),
            row=row,
            side=side,
            start=column("start"),
            captured_bytes=column("captured_bytes"),
            size=column("size"),
            packet=packet,
            time_ns=column("time_ns"),
            file=reading.files_of(packet),
            connection=table.connection[row],
            api=Coded(apis.codes[row], apis.values),
            api_version=table.api_version[row],
            correlation_id=table.correlation_id[row],
        )

    def _is_excluded(self, key: int, side: Kind) -> bool:
        return not self._show_secrets and _carries_messages(key, side)

    def _fallback_rows(
        self, table: Exchanges, messages: MessageColumns, unread: Bools
    ) -> list[tuple[int, FieldRow]]:
        """Return the rows of the messages that the codecs read, each with its message number."""
        reading, names = self._capture.reading, self._capture.names
        assert reading is not None
        rows: list[tuple[int, FieldRow]] = []
        for number in np.flatnonzero(unread).tolist():
            exchange = reading.exchange(table, int(messages.row[number]), names)
            message = exchange.response if messages.side[number] else exchange.request
            assert message is not None
            if message.shown_version is not None:
                messages.api_version[number] = message.shown_version
            rows += [(number, row) for row in field_rows(exchange, message, self._show_secrets)]
        return rows


def message_numbers(packet: Ints, end: Ints, side: Ints) -> Ints:
    """
    Return numbers for messages that are unique in the capture and ordered by packets.

    A number holds the packet that completed the message, and the message's end in its stream:
    messages completed by one packet end at different offsets. So a part of a capture gives the same
    numbers as the whole.
    """
    return packet << _END_BITS + 1 | (end & (1 << _END_BITS) - 1) << 1 | side


@per_schemas
def _carries_messages(key: int, side: Kind) -> bool:
    known_api = api(key)
    return known_api is not None and carries_messages(known_api.schema(side).fields)


def _drop_messages(fields_read: tape.Tape, dropped: Bools) -> tape.Tape:
    """Return a tape without the rows of some messages."""
    is_kept = ~dropped[fields_read.message]
    columns = [getattr(fields_read, each.name) for each in fields(fields_read)]
    rows = [column[is_kept] for column in columns[:-2]]
    return tape.Tape(*rows, *columns[-2:])


def _display_path(ref: FieldRef | None) -> str:
    """Return the displayed path of a field."""
    if ref is None:
        return ""
    path = ref.path.removesuffix(".[]") + "[]" * ref.path.endswith(".[]")
    return f"header.{path}" if ref.key < 0 else path
