"""Columns to be written, and how parts of them are joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.arrow import gather_bytes
from dissector.engine.tables.column_types import SliceBuffers, Slices
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import escape_invalid_utf8

Flags: TypeAlias = NDArray[np.bool_]

LEAST_ROWS = 1 << 15
"""Fewer rows are written together with the next ones."""


@dataclass(slots=True)
class Numbers:
    """
    Numbers.

    Attributes:
        values: Of 16, 32 or 64 bits, or floats.
        is_set: Mask of non-null values; None for all.
        repeats: Number of rows of each; None for one.
    """

    values: NDArray[Any]
    is_set: Flags | None = None
    repeats: Ints | None = None


@dataclass(slots=True)
class Names:
    """
    Texts shared by many rows.

    Attributes:
        codes: Index of the text; NONE for null.
        texts: The texts; None for null.
        repeats: See `Numbers`.
    """

    codes: NDArray[Any]
    texts: Sequence[str | None]
    repeats: Ints | None = None


@dataclass(slots=True)
class Texts:
    """
    Texts in UTF-8, or bytes.

    Attributes:
        slices: Where they are.
    """

    slices: Slices
    repeats: None = None


Values: TypeAlias = Numbers | Names | Texts


@dataclass(slots=True)
class Lists:
    """
    Lists of values or of structs.

    Attributes:
        counts: Items of each row.
        is_set: Mask of non-null rows; None for all.
        fields: Concatenated fields of all items; see `ListType`.
    """

    counts: Ints
    is_set: Flags | None
    fields: Mapping[str, Values]


Column: TypeAlias = Values | Lists


@dataclass(slots=True)
class RowGroup:
    """
    Rows that are written together.

    Attributes:
        rows: Their number.
        columns: Their columns, by name.
    """

    rows: int
    columns: Mapping[str, Column]


def regrouped(groups: Iterable[RowGroup]) -> Iterator[RowGroup]:
    """Yield the same rows, small groups joined."""
    waiting: list[RowGroup] = []
    rows = 0
    for group in groups:
        if group.rows == 0:
            continue
        if not waiting and group.rows >= LEAST_ROWS:
            yield group
            continue
        waiting.append(_detached(group))
        rows += group.rows
        if rows >= LEAST_ROWS:
            yield _joined(waiting, rows)
            waiting, rows = [], 0
        del group
    if waiting:
        yield _joined(waiting, rows)


def _detached(group: RowGroup) -> RowGroup:
    """Return a group with its own texts, so that the window is not kept alive."""
    return RowGroup(group.rows, {name: _own(each) for name, each in group.columns.items()})


def _own(column: Any) -> Any:
    if isinstance(column, Lists):
        fields = {name: _own(each) for name, each in column.fields.items()}
        return Lists(column.counts, column.is_set, fields)
    return Texts(_gathered([column.slices])) if isinstance(column, Texts) else column


def _joined(groups: list[RowGroup], rows: int) -> RowGroup:
    if len(groups) == 1:
        return groups[0]
    names = groups[0].columns
    return RowGroup(
        rows, {name: _concatenated([each.columns[name] for each in groups]) for name in names}
    )


def _concatenated(parts: list[Any]) -> Any:
    """Join columns of one kind."""
    if isinstance(parts[0], Lists):
        fields = {
            name: _concatenated([each.fields[name] for each in parts]) for name in parts[0].fields
        }
        return Lists(np.concatenate([each.counts for each in parts]), _all_set(parts), fields)
    if any(isinstance(each, Texts) for each in parts):
        return Texts(_gathered([_slices(each) for each in parts]))
    repeats = None
    if any(each.repeats is not None for each in parts):
        repeats = np.concatenate([_repeats(each) for each in parts])
    if isinstance(parts[0], Names):
        texts: list[str | None] = []
        codes = []
        for each in parts:
            codes.append(
                np.where(each.codes == NONE, NONE, each.codes.astype(np.int64) + len(texts))
            )
            texts += each.texts
        return Names(np.concatenate(codes), texts, repeats)
    return Numbers(np.concatenate([each.values for each in parts]), _all_set(parts), repeats)


def _all_set(parts: list[Any]) -> Flags | None:
    """Join the masks of values that are not null."""
    if all(each.is_set is None for each in parts):
        return None
    sizes = [len(each.counts if isinstance(each, Lists) else each.values) for each in parts]
    return np.concatenate(
        [
            np.ones(size, np.bool_) if each.is_set is None else each.is_set
            for each, size in zip(parts, sizes, strict=True)
        ]
    )


def _slices(column: Texts | Names) -> Slices:
    """Return texts as slices, also those that are given by their codes."""
    if isinstance(column, Texts):
        return column.slices
    contents = [escape_invalid_utf8(text or "").encode() for text in column.texts]
    length = np.array([*map(len, contents), 0], np.int64)
    start = np.cumsum(length) - length
    start[[*(text is None for text in column.texts), True]] = NONE
    rows = np.where(column.codes == NONE, len(contents), column.codes)
    if column.repeats is not None:
        rows = np.repeat(rows, column.repeats)
    no_bytes = np.zeros(0, np.uint8)
    buffers = SliceBuffers(np.frombuffer(b"".join(contents), np.uint8), no_bytes, no_bytes)
    return Slices(start[rows], length[rows], buffers)


def _repeats(column: Numbers | Names) -> Ints:
    values = column.values if isinstance(column, Numbers) else column.codes
    return np.ones(len(values), np.int64) if column.repeats is None else column.repeats


def _gathered(parts: list[Slices]) -> Slices:
    """Return slices with the bytes of all parts in one buffer."""
    starts, lengths, pools = [], [], []
    at = 0
    for each in parts:
        offsets, pool = gather_bytes(each)
        starts.append(np.where(each.start == NONE, NONE, offsets[:-1] + at))
        lengths.append(np.diff(offsets))
        pools.append(pool)
        at += len(pool)
    no_bytes = np.zeros(0, np.uint8)
    buffers = SliceBuffers(np.concatenate(pools), no_bytes, no_bytes)
    return Slices(np.concatenate(starts), np.concatenate(lengths), buffers)
