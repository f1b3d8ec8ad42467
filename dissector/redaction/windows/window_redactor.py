"""
Replaces the messages of a window at once.

The tape gives the places of names and contents. A message that it can't read to its last byte, or
with a field that depends on others, is left to `MessageRedactor`, which makes objects of it: what
is not proved here is not written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import numpy as np

from dissector.engine.fields.message_places import SIDES, MessagePlaces, first_steps
from dissector.engine.records.produce_results import last_marked
from dissector.engine.tables.exchange_table import Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.embedded.own_topics import is_own_topic
from dissector.protocol.program import UNKNOWN_TAG, programs
from dissector.redaction.messages.record_redactor import RecordRedactor
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.pseudonyms.distinct_contents import (
    Bools,
    Bytes,
    Places,
    replace_contents,
)
from dissector.redaction.windows.content_kernels import mark_contents
from dissector.redaction.windows.field_plan import (
    BY_CODECS,
    FIRST_REPLACEMENT,
    INT64_BYTES,
    RECORDS,
    TOPIC_ID,
    FieldPlan,
)
from dissector.redaction.windows.frame_kernels import SIZE_BYTES, FrameArrays, copy_frames
from dissector.redaction.windows.record_window import RecordWindow

FindTopic = Callable[[UUID], str | None]
_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(slots=True, eq=False, repr=False)
class RedactedWindow:
    """
    The messages of a window, replaced.

    Attributes:
        messages: All messages.
        is_done: Whether each one is replaced; the others are for `MessageRedactor`.
        at: Where the size of each replaced message is in `data`, before its bytes.
        data: The replaced messages, those of a stream one after the other.
    """

    messages: MessagePlaces
    is_done: Bools
    at: Ints
    data: Bytes

    def unread(self) -> Iterator[tuple[int, list[Kind]]]:
        """Yield the rows of exchanges with messages that are not done, and the kinds of these."""
        rest = np.flatnonzero(~self.is_done)
        pairs = zip(
            self.messages.row[rest].tolist(), self.messages.side[rest].tolist(), strict=True
        )
        for row, found in groupby(pairs, key=itemgetter(0)):
            yield row, [SIDES[side] for _, side in found]


class WindowRedactor:
    """Replaces the messages of windows."""

    def __init__(
        self, values: ValueRedactor, records: RecordRedactor, topic_name: FindTopic
    ) -> None:
        """
        Replace by functions.

        Args:
            values: Replaces single values.
            records: Replaces `records` fields that are not replaced in columns.
            topic_name: Returns the name of a topic id, if it is known.
        """
        self._plan = FieldPlan(values)
        self._records = records
        self._contents = RecordWindow(values, records.same_length)
        self._topic_name = topic_name

    def redact(self, table: Exchanges, chosen: Bools) -> RedactedWindow:
        """Replace the messages of a window's chosen exchanges."""
        messages = MessagePlaces.of(table)
        steps = first_steps(table, messages, lambda key, side: False)
        steps[~(chosen & ~table.token)[messages.row]] = -1
        plan = self._plan
        plan.update()
        end = messages.start + messages.captured_bytes
        read = tape.read(
            table.data, table.carry_over, messages.start, end, steps, programs(), plan.wanted
        )
        action = plan.actions[read.field].astype(np.int64)
        is_done = read.state == tape.FITS
        has_content = (read.value > 0) | (read.field == UNKNOWN_TAG)
        is_done[read.message[(action == BY_CODECS) & has_content]] = False
        length = np.where(is_done, SIZE_BYTES + messages.captured_bytes, 0)
        at = np.zeros(len(length), np.int64)
        order = _order_in_streams(table, messages)
        at[order] = np.cumsum(length[order]) - length[order]
        found = RedactedWindow(messages, is_done, at, np.zeros(int(length.sum()), np.uint8))
        self._copy(table, found)
        self._replace_values(table, found, read, action)
        self._replace_all_records(table, found, read, action)
        return found

    def _copy(self, table: Exchanges, found: RedactedWindow) -> None:
        """Copy the messages that are replaced here."""
        messages, chosen = found.messages, found.is_done
        columns = messages.start, messages.captured_bytes, messages.size, found.at
        frames = FrameArrays._make(np.ascontiguousarray(each[chosen]) for each in columns)
        copy_frames(table.data, table.carry_over, frames, found.data)

    def _replace_values(
        self, table: Exchanges, found: RedactedWindow, read: tape.Tape, action: Ints
    ) -> None:
        """Replace texts, ids and producer ids."""
        is_number = self._plan.is_int64[read.field]
        length = np.where(is_number, INT64_BYTES, read.value)
        rows = np.flatnonzero(
            (action >= FIRST_REPLACEMENT) & (length > 0) & found.is_done[read.message]
        )
        message = read.message[rows]
        kinds = action[rows] - FIRST_REPLACEMENT
        at = _place(found, message, read.start[rows])
        places = Places(read.start[rows], length[rows], kinds)
        source, target = (table.data, table.carry_over), (found.data, _NO_BYTES)
        is_replaced = replace_contents(source, places, at, self._plan.replacements, target)
        found.is_done[message[~is_replaced]] = False

    def _replace_all_records(
        self, table: Exchanges, found: RedactedWindow, read: tape.Tape, action: Ints
    ) -> None:
        """Replace the records of all fields."""
        rows = np.flatnonzero((action == RECORDS) & (read.value > 0) & found.is_done[read.message])
        start, length = read.start[rows], read.value[rows]
        at = _place(found, read.message[rows], start)
        topic_rows, number = np.unique(
            last_marked(self._plan.topics[read.field] > 0)[rows], return_inverse=True
        )
        topics = [self._topic(table, read, each) for each in topic_rows.tolist()]
        is_own = np.array([each is not None and is_own_topic(each) for each in topics], np.bool_)
        is_usual = self._records.structured is None and mark_contents.is_compiled
        is_plain = ~is_own[number] & is_usual
        is_plain[is_plain] = self._contents.replace(found.data, at[is_plain], length[is_plain])
        self._records.lost_batches += self._contents.take_lost_batches()
        for row in np.flatnonzero(~is_plain).tolist():
            content = table.bytes_at(int(start[row]), int(length[row]))
            new = self._records.redact(content, topics[number[row]])
            found.data[at[row] : at[row] + length[row]] = np.frombuffer(new, np.uint8)

    def _topic(self, table: Exchanges, read: tape.Tape, row: int) -> str | None:
        """Return the topic that a row of the tape names."""
        content = table.bytes_at(int(read.start[row]), max(int(read.value[row]), 0))
        if self._plan.topics[read.field[row]] == TOPIC_ID:
            return self._topic_name(UUID(bytes=content))
        return content.decode("utf-8", "surrogateescape") or None


def _order_in_streams(table: Exchanges, messages: MessagePlaces) -> Ints:
    """Return messages stream after stream: their store then keeps one range for each run."""
    connection = table.connection[messages.row]
    order: Ints = np.lexsort((messages.offset, messages.side, connection))
    return order


def _place(found: RedactedWindow, message: tape.Int32s, start: Ints) -> Ints:
    """Return where the bytes of messages are in the copy."""
    place: Ints = found.at[message] + SIZE_BYTES + start - found.messages.start[message]
    return place
