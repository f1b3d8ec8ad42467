"""Applies the screens of rules to all exchanges of a window at once, from the tape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.rule_screen import (
    Bools,
    FieldLimits,
    ItemKeys,
    ScreenedRows,
    ScreenTest,
    Shape,
)
from conform.screens.item_keys import Digests, messages_with_repeats
from conform.screens.message_layout import MessageLayout, canonical_limits, message_layout
from conform.screens.requested_partitions import partition_digests
from dissector.capture.columns import unique
from dissector.engine.facts.fact_kernel import VERSIONS
from dissector.engine.facts.fact_tables import distinct_kinds, message_kinds
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames
from dissector.engine.tape.tape import FITS, Tape, read_in_batches
from dissector.protocol.api import Kind
from dissector.protocol.headers import API_VERSIONS, FETCH, PRODUCE
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import programs

Ints: TypeAlias = NDArray[np.int64]

NOTHING = 0
"""The result of an exchange that passes no test."""

MIN_MESSAGES = 32
"""Messages of one kind in a window from which on they are screened: the layout has a cost."""

SIDES: tuple[Kind, Kind] = "request", "response"
_REQUEST, _RESPONSE = 2, 1


@dataclass(slots=True, eq=False)
class ScreenedWindow:
    """
    The results of a window.

    Attributes:
        passed: Of each exchange, a bit for each passed test, in the order of the tests of
            `WindowScreens`; NOTHING unless its messages are canonical.
        shape: Of each exchange, the number of its shape; see `shape_of`.
    """

    passed: list[int]
    shape: list[int]


class _Side(NamedTuple):
    """
    What was read of the requests, or of the responses.

    Attributes:
        inside: For each of the limits, and the keys, which messages keep it or are absent.
        partitions: Of Produce and Fetch messages, a digest of their partitions.
    """

    inside: Bools
    partitions: Digests


class WindowScreens:
    """
    The screens of some rules.

    Attributes:
        bits: The bit of each test.
    """

    def __init__(self, tests: Iterable[ScreenTest]) -> None:
        distinct = list(dict.fromkeys(tests))
        self.bits = {test: 1 << number for number, test in enumerate(distinct)}
        self._keys: ItemKeys | None = next((test.keys for test in distinct if test.keys), None)
        assert all(test.keys in (None, self._keys) for test in distinct), "keys of one kind only"
        limits = (test.limits for test in distinct if test.limits is not None)
        self._limits: tuple[FieldLimits, ...] = tuple(dict.fromkeys([canonical_limits, *limits]))
        self._compares_partitions = any(test.same_partitions for test in distinct)

    def apply(self, rows: ScreenedRows) -> ScreenedWindow:
        """Apply all screens to a window."""
        table = rows.table
        kinds = np.where(table.token, -1, message_kinds(table))
        has_request, has_response = (side.start != NONE for side in (table.request, table.response))
        shape = kinds * 4 + has_request * _REQUEST + has_response * _RESPONSE
        if not self.bits:
            return ScreenedWindow([NOTHING] * len(table), shape.tolist())
        request, response = (self._side(table, kinds, side) for side in SIDES)
        inside = request.inside & response.inside
        has_same_partitions = np.isin(table.api_key, (PRODUCE, FETCH)) & has_request & has_response
        has_same_partitions &= request.partitions == response.partitions
        passed = np.zeros(len(table), np.int64)
        for test, bit in self.bits.items():
            passes = inside[0].copy()
            if test.limits is not None:
                passes &= inside[self._limits.index(test.limits)]
            if test.keys is not None:
                passes &= inside[-1]
            if test.same_partitions:
                passes &= has_same_partitions
            if test.rows is not None:
                passes &= test.rows(rows)
            passed[passes] |= bit
        return ScreenedWindow(passed.tolist(), shape.tolist())

    def _side(self, table: Exchanges, kinds: Ints, side: Kind) -> _Side:
        """Read the messages of one side."""
        frames = table.request if side == "request" else table.response
        read = _Side(
            np.zeros((len(self._limits) + 1, len(table)), np.bool_),
            np.zeros(len(table), np.uint64),
        )
        read.inside[:, (frames.start == NONE) & (kinds >= 0)] = True
        is_readable = _readable(table, kinds, side, frames)
        for kind in distinct_kinds(np.where(is_readable, kinds, -1)):
            rows = np.flatnonzero(is_readable & (kinds == kind))
            if len(rows) < MIN_MESSAGES:
                continue
            layout = message_layout(*divmod(kind, VERSIONS), side, self._limits, self._keys)
            if layout is not None:
                self._read(table, frames, rows, layout, read)
        return read

    def _read(
        self, table: Exchanges, frames: Frames, rows: Ints, layout: MessageLayout, side: _Side
    ) -> None:
        """Read the messages of one kind, and write which are inside the limits."""
        first = 0
        for tape in read_in_batches(
            table.data,
            table.carry_over,
            frames.start[rows],
            frames.start[rows] + frames.size[rows],
            np.full(len(rows), layout.step),
            programs(),
            np.ones(len(programs().field_refs), np.uint8),
        ):
            read = rows[first : first + len(tape.state)]
            first += len(read)
            passes = np.tile(tape.state == FITS, (len(side.inside), 1))
            passes[0] &= _canonical_sizes(tape, layout, len(read)) == frames.size[read]
            passes[0, tape.message[_non_ascii_rows(table, tape, layout)]] = False
            for number, (lowest, highest) in enumerate(
                zip(layout.lowest, layout.highest, strict=True)
            ):
                is_outside = tape.value < lowest[tape.field]
                is_outside |= tape.value > highest[tape.field]
                passes[number, tape.message[is_outside]] = False
            passes[-1, messages_with_repeats(table, tape, layout)] = False
            side.inside[:, read] = passes
            if self._compares_partitions:
                side.partitions[read] = partition_digests(table, tape, len(read))


def shape_of(number: int) -> Shape:
    """Return the shape of an exchange by its number; its messages have layouts."""
    kind, messages = divmod(number, 4)
    key, version = divmod(kind, VERSIONS)

    def flexible(side: Kind, bit: int) -> bool | None:
        layout = message_layout(key, version, side) if messages & bit else None
        return None if layout is None else layout.is_flexible

    return Shape(key, flexible("request", _REQUEST), flexible("response", _RESPONSE))


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


def _canonical_sizes(tape: Tape, layout: MessageLayout, count: int) -> Ints:
    """Return the size of the shortest form of each message, without tagged fields."""
    units = np.maximum(tape.value, 0)
    size = layout.size[tape.field] + layout.unit_size[tape.field] * units
    is_compact = layout.is_compact[tape.field]
    length = tape.value[is_compact] + 1
    size[is_compact] += 1 + sum((length >= 1 << bits).astype(np.int64) for bits in (7, 14, 21, 28))
    sums: Ints = np.bincount(tape.message, size, count).astype(np.int64)
    return sums + layout.base_size


def _non_ascii_rows(table: Exchanges, tape: Tape, layout: MessageLayout) -> Ints:
    """Return the rows of the tape whose text may not be UTF-8: it is not ASCII."""
    texts = np.flatnonzero(layout.is_text[tape.field] & (tape.value > 0))
    border = len(table.data)
    is_carried = tape.start[texts] >= border
    found = [
        _with_high_bytes(table.data, tape.start, tape.value, texts[~is_carried]),
        _with_high_bytes(table.carry_over, tape.start - border, tape.value, texts[is_carried]),
    ]
    return np.concatenate(found)


def _with_high_bytes(source: NDArray[np.uint8], start: Ints, length: Ints, rows: Ints) -> Ints:
    """Return those of some rows whose bytes in a buffer are not all below 128."""
    lengths = length[rows]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    at = np.repeat(start[rows] - (ends - lengths), lengths) + np.arange(total)
    high = np.flatnonzero(source[at] >= 128)
    return rows[unique(np.searchsorted(ends, high, "right"))]
