"""
Delays rows with unnamed topic ids, as names may be defined later in the capture.

The columns of the rows wait, without the bytes of the window, and only up to a limit: then the rest
of the capture is read ahead, as for a single id (`TopicNames`). So a capture is read twice only if
it is long and names come late in it, or never.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from uuid import UUID

from dissector.engine.exchanges.exchange_columns import with_names
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.column_types import Coded, Columns, row_count
from dissector.engine.tables.packed_columns import pack_columns, unpack_columns

MAX_WAITING_ROWS = 1 << 19
"""Maximum number of waiting rows: some 20 MB."""


def resolve_late_names(
    parts: Iterable[Columns], names: TopicNames, max_rows: int = MAX_WAITING_ROWS
) -> Iterator[Columns]:
    """
    Yield columns of `pairs` in order, once all names of their topics are known that can be.

    Args:
        parts: All parts of a capture; names are learned from each part in order.
        names: Known names of topic ids.
        max_rows: Maximum number of waiting rows.
    """
    late = LateNames(names, max_rows)
    for part in parts:
        yield from late.add(part)
    yield from late.finish()


class LateNames:
    """Columns of `pairs` that wait for the names of their topics."""

    def __init__(self, names: TopicNames, max_rows: int = MAX_WAITING_ROWS) -> None:
        """Start; see `resolve_late_names`."""
        self._names = names
        self._max_rows = max_rows
        self._waiting: deque[tuple[set[UUID], int, Columns]] = deque()
        self._rows = 0

    def add(self, part: Columns) -> Iterator[Columns]:
        """Add the next part; yield those with known names, in order."""
        names, waiting = self._names, self._waiting
        unnamed = _unnamed_ids(part, names)
        if not waiting and not unnamed:
            yield with_names(part, names)
            return
        waiting.append((unnamed, row_count(part), pack_columns(part)))
        self._rows += row_count(part)
        if self._rows > self._max_rows:
            names.read_ahead()
        while waiting and not (names.can_read_ahead and waiting[0][0] - names.by_id.keys()):
            _, count, packed = waiting.popleft()
            self._rows -= count
            yield with_names(unpack_columns(packed), names)

    def finish(self) -> Iterator[Columns]:
        """Yield the parts that still wait, after the end of the capture."""
        self._names.mark_complete()
        while self._waiting:
            yield with_names(unpack_columns(self._waiting.popleft()[2]), self._names)


def _unnamed_ids(part: Columns, names: TopicNames) -> set[UUID]:
    """Return the topic ids without a name so far, if a name may follow."""
    topics = part["topics"]
    if not names.can_read_ahead or not isinstance(topics, Coded):
        return set()
    ids = {topic for each in topics.values for topic in each if isinstance(topic, UUID)}
    return ids - names.by_id.keys()
