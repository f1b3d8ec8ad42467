"""
Every field of every message: a row for each, in wire order, off the tape.

Messages come in the order in which their exchanges end, the request first. The tape reads those
that are whole and fit their declaration. All others (cut, broken, of an unknown API or version,
with unknown tagged fields, Envelopes, whose content says whether it is secret) are read by the
codecs' spans: the same rows as far as the bytes fit, then one for each problem. What `records`
fields hold is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange_columns import api_names
from dissector.engine.facts.fact_kernel import KEYS, VERSIONS
from dissector.engine.facts.fact_tables import distinct_kinds, message_kinds
from dissector.engine.fields.codec_fallback import FieldRow, fallback_columns, field_rows
from dissector.engine.fields.field_columns import tape_columns
from dissector.engine.fields.field_display import FieldDisplay, field_type
from dissector.engine.fields.field_frame import (
    FieldNames,
    MessageColumns,
    field_frame,
    merge_frames,
)
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.apis import api, source_of
from dissector.protocol.context import per_schemas
from dissector.protocol.embedded.masking import carries_messages
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import UNKNOWN_TAG, FieldRef, programs

if TYPE_CHECKING:
    import polars

    from dissector.engine.reading.capture import Capture

Bools: TypeAlias = NDArray[np.bool_]

SIDES: tuple[Kind, Kind] = ("request", "response")

_END_BITS = 24
"""As many as tell places in one packet apart."""


class FieldReader:
    """Makes a table of the fields of each window."""

    def __init__(self, capture: Capture, show_secrets: bool) -> None:
        """Begin a pass over a capture."""
        self._capture = capture
        self._show_secrets = show_secrets
        self._display = FieldDisplay(show_secrets)
        self._names: list[tuple[str, str]] = []

    def frames(
        self, table: Exchanges, max_rows: int = tape.BATCH_ROWS
    ) -> Iterator[polars.DataFrame]:
        """
        Yield the fields of all messages of a window, or of some of its exchanges.

        Args:
            table: The exchanges.
            max_rows: Of a table, unless a single message has more. Whoever writes tables holds
                several of them at a time, and counts them, not their rows.
        """
        messages = self._messages(table)
        steps = self._first_steps(table, messages)
        places = programs().field_refs
        self._names += [
            (_display_path(each), field_type(each)) for each in places[len(self._names) :]
        ]
        first = 0
        for read in tape.read_in_batches(
            table.data,
            table.carry_over,
            messages.start,
            messages.start + messages.captured_bytes,
            steps,
            programs(),
            np.ones(len(places), np.uint8),
            max_rows,
        ):
            some = messages.select(slice(first, first + len(read.state)))
            first += len(some)
            yield self._frame(table, some, read)

    def _frame(
        self, table: Exchanges, messages: MessageColumns, read: tape.Tape
    ) -> polars.DataFrame:
        """Return the fields of some messages that follow one another."""
        left = read.state != tape.FITS
        left[read.message[read.field == UNKNOWN_TAG]] = True
        # Of messages that broke the tape has no rows.
        if left[read.message].any():
            read = _drop_messages(read, left)
        looks = self._display.update(programs().field_refs)
        columns = tape_columns(table, read, messages.start, looks)
        names = FieldNames(self._names.copy())
        rows = self._fallback_rows(table, messages, left)
        out = field_frame(messages, columns, names)
        if rows:
            rest = fallback_columns(rows, names)
            more = field_frame(messages, rest, names)
            out = merge_frames(out, columns.message, more, rest.message)
        return out

    def _messages(self, table: Exchanges) -> MessageColumns:
        """Return the messages of a window in their order."""
        count = len(table)
        sides = table.request, table.response
        there = np.stack([side.start != NONE for side in sides], axis=1).ravel()
        row, side = np.divmod(np.flatnonzero(there), 2)

        def column(name: str) -> Ints:
            both = np.stack([getattr(side, name) for side in sides], axis=1)
            found: Ints = both.reshape(2 * count)[there]
            return found

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

    def _first_steps(self, table: Exchanges, messages: MessageColumns) -> Ints:
        """Return the first step of each message's program; -1 where it is left to the codecs."""
        kinds = message_kinds(table)
        starts = np.full((KEYS * VERSIONS + 1, len(SIDES)), -1, np.int64)
        for kind in distinct_kinds(kinds):
            key, version = divmod(kind, VERSIONS)
            for side, word in enumerate(SIDES):
                # What a definition read is noted by the codecs.
                if source_of(key, word, version) is not None:
                    continue
                if self._show_secrets or not _carries_messages(key, word):
                    starts[kind, side] = programs().start(key, version, word)
        of_messages = kinds[messages.row]
        steps: Ints = starts[of_messages, messages.side]
        answers = messages.side == 1
        # A refusal of the version is v0 or something else.
        told = answers & (of_messages // VERSIONS == API_VERSIONS) & (messages.captured_bytes >= 6)
        refused = table.int16_at(messages.start[told] + 4) == UNSUPPORTED_VERSION
        steps[told] = np.where(refused, -1, steps[told])
        steps[answers & table.answers_acks_0[messages.row]] = -1
        steps[messages.captured_bytes != messages.size] = -1
        return steps

    def _fallback_rows(
        self, table: Exchanges, messages: MessageColumns, unread: Bools
    ) -> list[tuple[int, FieldRow]]:
        """Return the rows of the messages that are left to the codecs, each with its message."""
        reading, names = self._capture.reading, self._capture.names
        assert reading is not None
        rows: list[tuple[int, FieldRow]] = []
        for number in np.flatnonzero(unread).tolist():
            asked = reading.exchange(table, int(messages.row[number]), names)
            message = asked.response if messages.side[number] else asked.request
            assert message is not None
            if message.shown_version is not None:
                messages.api_version[number] = message.shown_version
            rows += [(number, row) for row in field_rows(asked, message, self._show_secrets)]
        return rows


def message_numbers(packet: Ints, end: Ints, side: Ints) -> Ints:
    """
    Return numbers for messages that no others of the capture have, in the order of its packets.

    They say which packet completed a message, and where in its stream that message ends: what one
    packet completes ends at different places. So a part of a capture gives the same as the whole.
    """
    return packet << _END_BITS + 1 | (end & (1 << _END_BITS) - 1) << 1 | side


@per_schemas
def _carries_messages(key: int, side: Kind) -> bool:
    found = api(key)
    return found is not None and carries_messages(found.schema(side).fields)


def _drop_messages(read: tape.Tape, dropped: Bools) -> tape.Tape:
    """Return a tape without the rows of some messages."""
    kept = ~dropped[read.message]
    columns = [getattr(read, each.name) for each in fields(read)]
    rows = [column[kept] for column in columns[:-2]]
    return tape.Tape(*rows, *columns[-2:])


def _display_path(ref: FieldRef | None) -> str:
    """Return the path of a field as it is shown."""
    if ref is None:
        return ""
    path = ref.path.removesuffix(".[]") + "[]" * ref.path.endswith(".[]")
    return f"header.{path}" if ref.key < 0 else path
