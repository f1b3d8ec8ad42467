"""The layouts of the messages of many kinds in one table, so that a window is read at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.rule_screen import ANY_LIMITS, FieldLimits, ItemKeys
from conform.registry.screened_columns import Bools
from conform.screens.message_layout import ANY_VALUE, MessageLayout, message_layout
from dissector.engine.facts.fact_kernel import VERSIONS
from dissector.engine.tape.tape import Tape
from dissector.protocol.api import Kind
from dissector.protocol.program import programs

Ints: TypeAlias = NDArray[np.int64]

MIN_MESSAGES = 4
"""Messages of one kind from which on they are screened: the layout has a cost."""

NO_LAYOUT = -1

_UNKNOWN_FIELD = 0
"""The row of what a layout does not have, such as unknown tags: nothing is known of it."""


@dataclass(slots=True, eq=False)
class LayoutColumns:
    """
    The fields of all layouts one after another, in columns as those of `MessageLayout`.

    Attributes:
        step: Of each layout, the first instruction of its program.
        base_size: Of each layout, the size of the tag sections outside arrays and tagged fields.
        row: The row of a field here, by the number of its layout and its own.
        limited: The limits of a field other than any value, as bits.
    """

    step: Ints
    base_size: Ints
    row: Ints
    size: Ints
    unit_size: Ints
    is_compact: Bools
    is_text: Bools
    has_content: Bools
    list_of: Ints
    is_topic: Bools
    is_tagged: Bools
    tag_size: Ints
    default: Ints
    lowest: Ints
    highest: Ints
    limited: Ints

    def rows_of(self, tape: Tape, layouts: Ints) -> Ints:
        """Return the rows of the fields on a tape, of messages with some layouts."""
        found: Ints = self.row[layouts[tape.message], tape.field]
        return found


class LayoutTable:
    """
    The layouts of requests, or of responses; each is made once there are enough messages.

    Args:
        side: The side.
        limits: The limits of fields.
        keys: The keys of items.
    """

    def __init__(self, side: Kind, limits: tuple[FieldLimits, ...], keys: ItemKeys | None) -> None:
        self._side: Kind = side
        self._limits, self._keys = limits, keys
        self._layouts: list[MessageLayout] = []
        self._number_of: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._columns: LayoutColumns | None = None

    def numbers(self, kinds: Ints) -> Ints:
        """Return the number of each message's layout by its kind; NO_LAYOUT for none."""
        counts = np.bincount(kinds + 1)[1:]
        number_of = np.full(len(counts) + 1, NO_LAYOUT, np.int64)
        for kind in np.flatnonzero(counts).tolist():
            number_of[kind] = self._number(kind, int(counts[kind]))
        return number_of[kinds]  # no kind is -1, the last

    def _number(self, kind: int, count: int) -> int:
        """Return the number of the layout of a kind, of which there are some more messages."""
        found = self._number_of.get(kind)
        if found is not None:
            return found
        self._seen[kind] = self._seen.get(kind, 0) + count
        if self._seen[kind] < MIN_MESSAGES:
            return NO_LAYOUT
        layout = message_layout(*divmod(kind, VERSIONS), self._side, self._limits, self._keys)
        self._number_of[kind] = NO_LAYOUT if layout is None else len(self._layouts)
        if layout is not None:
            self._layouts.append(layout)
            self._columns = None
        return self._number_of[kind]

    def columns(self) -> LayoutColumns:
        """Return the columns of all layouts so far."""
        if self._columns is None or self._columns.row.shape[1] != len(programs().field_refs):
            self._columns = self._joined()
        return self._columns

    def _joined(self) -> LayoutColumns:
        layouts = self._layouts
        row = np.full((len(layouts), len(programs().field_refs)), _UNKNOWN_FIELD, np.int64)
        first = _UNKNOWN_FIELD + 1
        for number, layout in enumerate(layouts):
            row[number, layout.fields] = np.arange(first, first + len(layout.fields))
            first += len(layout.fields)

        def joined(name: str, unknown: int = 0) -> Any:
            columns = [getattr(each, name) for each in layouts]
            blank = np.full((1, *columns[0].shape[1:]), unknown, columns[0].dtype)
            return np.concatenate([blank, *columns])

        lowest, highest = joined("lowest", ANY_LIMITS[0]), joined("highest", ANY_LIMITS[1])
        is_limited = (lowest != ANY_LIMITS[0]) | (highest != ANY_LIMITS[1])
        bits = 1 << np.arange(is_limited.shape[1])
        names = ["size", "unit_size", "is_compact", "is_text", "has_content", "list_of", "is_topic"]
        names += ["is_tagged", "tag_size"]
        return LayoutColumns(
            step=np.array([each.step for each in layouts], np.int64),
            base_size=np.array([each.base_size for each in layouts], np.int64),
            row=row,
            lowest=lowest,
            highest=highest,
            default=joined("default", ANY_VALUE),
            limited=(is_limited * bits).sum(axis=1),
            **{name: joined(name) for name in names},
        )
