"""
Rows of which topics are nameless wait for the names, which may stand later in the capture.

What waits are their columns, without the bytes of the window, and no more of them than there is
room for: then the rest of the capture is asked at once, as for a single id (`TopicNames`). So a
capture is read twice only if it is long and names stand late in it, or nowhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import UUID

import numpy as np

from dissector.engine.columns import Coded, Columns, Integers, row_count
from dissector.engine.exchanges import Ints
from dissector.engine.pairs import with_names
from dissector.engine.topics import TopicNames

MOST_ROWS = 1 << 19
"""So many rows may wait: 40 MB."""


def named(
    parts: Iterable[Columns], names: TopicNames, most_rows: int = MOST_ROWS
) -> Iterator[Columns]:
    """
    Yield columns of `pairs` in their order once all names of topics are there that can be had.

    Args:
        parts: All of a capture; what each tells of names is learned when it comes.
        names: What is known of topic ids.
        most_rows: How many rows may wait.
    """
    waiting: deque[tuple[set[UUID], Columns]] = deque()
    rows = 0
    for part in parts:
        nameless = _nameless(part, names)
        if not waiting and not nameless:
            yield with_names(part, names)
            continue
        waiting.append((nameless, _packed(part)))
        rows += row_count(part)
        if rows > most_rows:
            names.ask()
        while waiting and not (names.may_ask and waiting[0][0] - names.known.keys()):
            _, kept = waiting.popleft()
            rows -= row_count(kept)
            yield with_names(_unpacked(kept), names)
    names.all_told()
    while waiting:
        yield with_names(_unpacked(waiting.popleft()[1]), names)


def _nameless(part: Columns, names: TopicNames) -> set[UUID]:
    """Return the topic ids of some rows that have no name so far, where one may come."""
    topics = part["topics"]
    if not names.may_ask or not isinstance(topics, Coded):
        return set()
    ids = {topic for each in topics.values for topic in each if isinstance(topic, UUID)}
    return ids - names.known.keys()


def _packed(part: Columns) -> Columns:
    """Return columns that take little room, and keep no memory of their window."""
    return {
        name: Integers(column.values.copy()) if isinstance(column, Integers) else column
        for name, column in _recoded(part, _narrow).items()
    }


def _unpacked(part: Columns) -> Columns:
    """Return columns as they were before they were packed."""
    return _recoded(part, lambda codes: codes.astype(np.int64))


def _recoded(part: Columns, change: Callable[[Ints], Ints]) -> Columns:
    """Return columns with other codes; those that have the same still have the same."""
    found = {id(column.codes): column.codes for column in _coded(part)}
    codes = {number: change(each) for number, each in found.items()}
    return {
        name: Coded(codes[id(column.codes)], column.values) if isinstance(column, Coded) else column
        for name, column in part.items()
    }


def _coded(part: Columns) -> Iterator[Coded]:
    return (column for column in part.values() if isinstance(column, Coded))


def _narrow(codes: Ints) -> Any:
    """Return codes in as few bytes as they need; as they are where some stand for null."""
    if int(codes.min(initial=0)) < 0:
        return codes
    return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))
