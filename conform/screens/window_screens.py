"""Applies the screens of rules to all exchanges of a window at once, from the tape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.rule_screen import FieldLimits, ItemKeys, ScreenTest, Shape
from conform.registry.screened_columns import (
    Bools,
    FieldBatches,
    Partitions,
    ScreenedPartitions,
    ScreenedRows,
)
from conform.registry.single_values import SingleValues
from conform.screens.canonical_sizes import canonical_sizes
from conform.screens.item_keys import messages_with_repeats
from conform.screens.layout_table import NO_LAYOUT, LayoutColumns, LayoutTable
from conform.screens.message_layout import canonical_limits, message_layout
from conform.screens.offer_columns import WindowOffers
from conform.screens.partition_columns import joined, paired, partitions_of
from conform.screens.single_fields import SingleFields
from conform.screens.text_bytes import text_bytes_are
from dissector.engine.facts.fact_kernel import VERSIONS
from dissector.engine.facts.fact_tables import message_kinds
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames
from dissector.engine.tape.tape import FITS, NULL, Tape, read_in_batches
from dissector.protocol.api import Kind
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import programs

Ints: TypeAlias = NDArray[np.int64]

NOTHING = 0
"""The result of an exchange that passes no test."""

SIDES: tuple[Kind, Kind] = "request", "response"
_REQUEST, _RESPONSE = 2, 1

_MIN_TOPIC_NAME, _MAX_TOPIC_NAME = 3, 249
"""Shorter names are few; '.' and '..' are not valid."""

_BYTES = np.arange(256)
_HIGH_BYTES = _BYTES >= 128
_NO_NAME_BYTES = ~np.isin(_BYTES, list(b"._-"))
for _first, _last in (b"az", b"AZ", b"09"):
    _NO_NAME_BYTES &= (_first > _BYTES) | (_last < _BYTES)


@dataclass(slots=True, eq=False)
class ScreenedWindow:
    """
    The results of a window.

    Attributes:
        passed: Of each exchange, a bit for each passed test, in the order of the tests of
            `WindowScreens`; NOTHING unless its messages are canonical.
        shape: Of each exchange, the number of its shape; see `shape_of`.
        partitions: The partitions in its Produce and Fetch messages.
        single: What its messages say once, if they are canonical.
    """

    passed: list[int]
    shape: list[int]
    partitions: ScreenedPartitions
    single: list[SingleValues]


class _Side(NamedTuple):
    """
    What was read of the requests, or of the responses.

    Attributes:
        inside: For each of the limits, the keys and the names of topics, which messages keep it or
            are absent.
        partitions: The partitions in Produce and Fetch messages.
        topics: The number of topics with a name.
    """

    inside: Bools
    partitions: Partitions
    topics: Ints


_KEYS, _TOPIC_NAMES = -2, -1
"""Their rows in `_Side.inside`, behind the limits."""


class WindowScreens:
    """
    The screens of some rules.

    Attributes:
        bits: The bit of each test.
        rests: The tests that need the state of a rule to be at rest, with their bits.
        in_session: The bits of the tests that a Fetch must continue its session for.
    """

    def __init__(self, tests: Iterable[ScreenTest]) -> None:
        distinct = list(dict.fromkeys(tests))
        self.bits = {test: 1 << number for number, test in enumerate(distinct)}
        self.rests = {test.rest: bit for test, bit in self.bits.items() if test.rest is not None}
        self.in_session = sum(bit for test, bit in self.bits.items() if test.in_session)
        keys: ItemKeys | None = next((test.keys for test in distinct if test.keys), None)
        assert all(test.keys in (None, keys) for test in distinct), "keys of one kind only"
        limits = (test.limits for test in distinct if test.limits is not None)
        self._limits: tuple[FieldLimits, ...] = tuple(dict.fromkeys([canonical_limits, *limits]))
        self._layouts = {side: LayoutTable(side, self._limits, keys) for side in SIDES}

    def apply(self, rows: ScreenedRows, batches: FieldBatches) -> ScreenedWindow:
        """Apply all screens to a window, with the batches of its `records` fields."""
        table = rows.table
        kinds = np.where(table.token, -1, message_kinds(table))
        shape = kinds * 4 + rows.has_request * _REQUEST + rows.has_response * _RESPONSE
        fields, offers = SingleFields(len(table)), WindowOffers(rows)
        request, response = (self._side(table, kinds, side, fields, offers) for side in SIDES)
        inside = request.inside & response.inside
        sessions = fields.sessions(rows)
        versions = offers.columns(inside[0], fields.is_refused)
        sides = request.partitions, response.partitions
        partitions = paired(rows, *sides, request.topics, batches, sessions, versions)
        single = fields.values()
        if not self.bits:
            return ScreenedWindow([NOTHING] * len(table), shape.tolist(), partitions, single)
        passed = np.zeros(len(table), np.int64)
        for test, bit in self.bits.items():
            passes = inside[0].copy()
            if test.limits is not None:
                passes &= inside[self._limits.index(test.limits)]
            if test.keys is not None:
                passes &= inside[_KEYS]
            if test.topic_names:
                passes &= inside[_TOPIC_NAMES]
            if test.in_session:
                passes &= ~sessions.exists | sessions.is_known
            if test.rows is not None:
                passes &= test.rows(rows)
            if test.partitions is not None:
                passes &= test.partitions(partitions)
            passed[passes] |= bit
        return ScreenedWindow(passed.tolist(), shape.tolist(), partitions, single)

    def _side(
        self,
        table: Exchanges,
        kinds: Ints,
        side: Kind,
        fields: SingleFields,
        offers: WindowOffers,
    ) -> _Side:
        """Read the messages of one side, the fields that they have once, and offered versions."""
        frames = table.request if side == "request" else table.response
        inside = np.zeros((len(self._limits) + 2, len(table)), np.bool_)
        inside[:, (frames.start == NONE) & (kinds >= 0)] = True
        is_readable = _readable(table, kinds, side, frames)
        layouts = self._layouts[side].numbers(np.where(is_readable, kinds, -1))
        rows = np.flatnonzero(layouts != NO_LAYOUT)
        partitions: list[Partitions] = []
        topics = np.zeros(len(table), np.int64)
        if not len(rows):
            return _Side(inside, joined(partitions), topics)
        columns = self._layouts[side].columns()
        first = 0
        for tape in read_in_batches(
            table.data,
            table.carry_over,
            frames.start[rows],
            frames.start[rows] + frames.size[rows],
            columns.step[layouts[rows]],
            programs(),
            np.ones(len(programs().field_refs), np.uint8),
        ):
            read = rows[first : first + len(tape.state)]
            first += len(read)
            at = columns.rows_of(tape, layouts[read])
            inside[:, read] = _passes(table, tape, at, columns, frames.size[read], layouts[read])
            is_topic = columns.is_topic[at] & (tape.value > 0)
            topics[read] = np.bincount(tape.message[is_topic], minlength=len(read))
            partitions.append(partitions_of(table, tape, read))
            fields.read(tape, read)
            offers.read(tape, read)
        return _Side(inside, joined(partitions), topics)


def _passes(
    table: Exchanges, tape: Tape, at: Ints, columns: LayoutColumns, sizes: Ints, layouts: Ints
) -> Bools:
    """Return which messages of a tape are inside; see `_Side`."""
    limits = columns.lowest.shape[1]
    passes = np.tile(tape.state == FITS, (limits + 2, 1))
    passes[0] &= canonical_sizes(table, tape, at, columns, layouts) == sizes
    texts = np.flatnonzero(columns.is_text[at] & (tape.value > 0))
    passes[0, tape.message[texts[text_bytes_are(table, tape, texts, _HIGH_BYTES)]]] = False
    limited = columns.limited[at]
    rows = np.flatnonzero(limited)
    bits, value, field, message = limited[rows], tape.value[rows], at[rows], tape.message[rows]
    for number in range(limits):
        of = np.flatnonzero(bits >> number & 1)
        is_outside = value[of] < columns.lowest[field[of], number]
        is_outside |= value[of] > columns.highest[field[of], number]
        passes[number, message[of[is_outside]]] = False
    passes[_KEYS, messages_with_repeats(table, tape, at, columns)] = False
    topics = np.flatnonzero(columns.is_topic[at] & (tape.value != NULL))
    length = tape.value[topics]
    is_odd = (length < _MIN_TOPIC_NAME) | (length > _MAX_TOPIC_NAME)
    is_odd |= text_bytes_are(table, tape, topics, _NO_NAME_BYTES)
    passes[_TOPIC_NAMES, tape.message[topics[is_odd]]] = False
    return passes


def shape_of(number: int) -> Shape:
    """Return the shape of an exchange by its number; its messages have layouts."""
    kind, messages = divmod(number, 4)
    key, version = divmod(kind, VERSIONS)

    def flexible(side: Kind, bit: int) -> bool | None:
        layout = message_layout(key, version, side) if messages & bit else None
        return None if layout is None else layout.is_flexible

    return Shape(key, version, flexible("request", _REQUEST), flexible("response", _RESPONSE))


def _readable(table: Exchanges, kinds: Ints, side: Kind, frames: Frames) -> Bools:
    """Return the whole messages that have the layout of their request's version."""
    is_readable: Bools = (frames.start != NONE) & (frames.captured_bytes == frames.size)
    if side == "request":
        return is_readable
    is_readable &= ~table.answers_acks_0
    # An ApiVersions response with UNSUPPORTED_VERSION has the layout of v0, or another one.
    chosen = np.flatnonzero(
        is_readable & (kinds // VERSIONS == API_VERSIONS) & (frames.captured_bytes >= 6)
    )
    is_refusal = table.int16_at(frames.start[chosen] + 4) == UNSUPPORTED_VERSION
    is_readable[chosen[is_refusal]] = False
    return is_readable
