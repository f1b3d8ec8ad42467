"""The messages of a window, a row each, and the programs that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dissector.engine.facts.fact_kernel import KEYS, VERSIONS
from dissector.engine.facts.fact_tables import distinct_kinds, message_kinds
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.protocol.api import Kind
from dissector.protocol.apis import source_of
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import programs

if TYPE_CHECKING:
    from dissector.engine.fields.field_frame import MessageColumns

SIDES: tuple[Kind, Kind] = ("request", "response")


@dataclass(slots=True, eq=False, repr=False)
class MessagePlaces:
    """
    The messages of a window in the order of exchanges, requests first.

    Attributes:
        row: Row of its exchange in the window.
        side: 0 for a request, 1 for a response.
        start: Address of the frame.
        captured_bytes: Bytes of the frame that were captured.
        size: Bytes of the whole frame.
        offset: Offset of the frame in its stream.
    """

    row: Ints
    side: Ints
    start: Ints
    captured_bytes: Ints
    size: Ints
    offset: Ints

    @classmethod
    def of(cls, table: Exchanges) -> MessagePlaces:
        """Return the messages of a window."""
        row, side = present_messages(table)
        names = "start", "captured_bytes", "size", "offset"
        return cls(row, side, *(message_column(table, row, side, name) for name in names))


def present_messages(table: Exchanges) -> tuple[Ints, Ints]:
    """Return row and side of each captured message."""
    is_present = np.stack([each.start != NONE for each in (table.request, table.response)], axis=1)
    return np.divmod(np.flatnonzero(is_present.ravel()), len(SIDES))


def message_column(table: Exchanges, row: Ints, side: Ints, name: str) -> Ints:
    """Return a column of `Frames` for messages."""
    found: Ints = np.where(
        side == 0, getattr(table.request, name)[row], getattr(table.response, name)[row]
    )
    return found


def first_steps(
    table: Exchanges,
    messages: MessagePlaces | MessageColumns,
    is_excluded: Callable[[int, Kind], bool],
) -> Ints:
    """
    Return the first step of each message's program; -1 for messages that only the codecs read.

    Args:
        table: The exchanges of a window.
        messages: Their messages.
        is_excluded: Returns whether messages of an API are left to the codecs.
    """
    kinds = message_kinds(table)
    starts = np.full((KEYS * VERSIONS + 1, len(SIDES)), -1, np.int64)
    for kind in distinct_kinds(kinds):
        key, version = divmod(kind, VERSIONS)
        for side, name in enumerate(SIDES):
            # Codecs record the definition by which a message was read.
            if source_of(key, name, version) is None and not is_excluded(key, name):
                starts[kind, side] = programs().start(key, version, name)
    message_kind = kinds[messages.row]
    steps: Ints = starts[message_kind, messages.side]
    is_response = messages.side == 1
    # A response with UNSUPPORTED_VERSION has the layout of v0, or another one.
    is_api_versions = (
        is_response & (message_kind // VERSIONS == API_VERSIONS) & (messages.captured_bytes >= 6)
    )
    refused = table.int16_at(messages.start[is_api_versions] + 4) == UNSUPPORTED_VERSION
    steps[is_api_versions] = np.where(refused, -1, steps[is_api_versions])
    steps[is_response & table.answers_acks_0[messages.row]] = -1
    steps[messages.captured_bytes != messages.size] = -1
    return steps
