"""
Rows of which topics are nameless wait for the names, which may stand later in the capture.

What waits are their columns, without the bytes of the window, and no more of them than there is
room for: then the rest of the capture is asked at once, as for a single id (`TopicNames`). So a
capture is read twice only if it is long and names stand late in it, or nowhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange_columns import with_names
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.column_types import Coded, Columns, Integers, Milliseconds, row_count
from dissector.engine.tables.exchange_table import NONE, Ints

MAX_WAITING_ROWS = 1 << 19
"""So many rows may wait: some 20 MB."""


def resolve_late_names(
    parts: Iterable[Columns], names: TopicNames, max_rows: int = MAX_WAITING_ROWS
) -> Iterator[Columns]:
    """
    Yield columns of `pairs` in their order once all names of topics are there that can be had.

    Args:
        parts: All of a capture; what each tells of names is learned when it comes.
        names: What is known of topic ids.
        max_rows: How many rows may wait.
    """
    waiting: deque[tuple[set[UUID], int, Columns]] = deque()
    rows = 0
    for part in parts:
        nameless = _nameless(part, names)
        if not waiting and not nameless:
            yield with_names(part, names)
            continue
        waiting.append((nameless, row_count(part), _packed(part)))
        rows += row_count(part)
        if rows > max_rows:
            names.read_ahead()
        while waiting and not (names.can_read_ahead and waiting[0][0] - names.by_id.keys()):
            _, count, kept = waiting.popleft()
            rows -= count
            yield with_names(_unpacked(kept), names)
    names.mark_complete()
    while waiting:
        yield with_names(_unpacked(waiting.popleft()[2]), names)


def _nameless(part: Columns, names: TopicNames) -> set[UUID]:
    """Return the topic ids of some rows that have no name so far, where one may come."""
    topics = part["topics"]
    if not names.can_read_ahead or not isinstance(topics, Coded):
        return set()
    ids = {topic for each in topics.values for topic in each if isinstance(topic, UUID)}
    return ids - names.by_id.keys()


class _Packed(NamedTuple):
    """
    Numbers in as few bytes as they need.

    Attributes:
        below: What is to be added.
        numbers: From 1 on; 0 for null.
    """

    below: int
    numbers: NDArray[Any]


def _packed(part: Columns) -> Columns:
    """Return columns that take little room, and keep no memory of their window."""
    return _renumbered(part, _narrow)


def _unpacked(part: Columns) -> Columns:
    """Return columns as they were before they were packed."""
    return _renumbered(part, _wide)


def _renumbered(part: Columns, change: Callable[[Any], Any]) -> Columns:
    """Return columns with other numbers; those that have the same still have the same."""
    changed: dict[int, Any] = {}
    out: dict[str, Any] = {}
    for name, column in part.items():
        numbers = getattr(column, _NUMBERS[type(column)])
        if id(numbers) not in changed:
            changed[id(numbers)] = change(numbers)
        out[name] = replace(column, **{_NUMBERS[type(column)]: changed[id(numbers)]})
    return out


_NUMBERS: Mapping[type, str] = {Coded: "codes", Integers: "values", Milliseconds: "values_ns"}
"""What columns of `pairs` keep their numbers in."""


def _narrow(numbers: Ints) -> _Packed:
    there = numbers != NONE
    below = int(numbers[there].min(initial=np.iinfo(np.int64).max)) - 1
    # Of numbers that are further apart than an int64 can tell, a uint64 can.
    distance = np.where(there, numbers - below, 0).view(np.uint64)
    return _Packed(below, distance.astype(np.min_scalar_type(int(distance.max(initial=0)))))


def _wide(packed: _Packed) -> Ints:
    distance = packed.numbers.astype(np.int64)
    return np.where(packed.numbers == 0, NONE, distance + packed.below)
