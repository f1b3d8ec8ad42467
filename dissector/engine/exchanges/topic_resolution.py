"""
Delays rows with unnamed topic ids, as names may be defined later in the capture.

The columns of the rows wait, without the bytes of the window, most of them in a temporary file; and
only up to a limit: then the rest of the capture is read ahead, as for a single id (`TopicNames`).
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import IO, NamedTuple
from uuid import UUID
from weakref import finalize

from dissector.engine.exchanges.exchange_columns import with_names
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.column_types import Coded, Columns, row_count
from dissector.engine.tables.packed_columns import pack_columns, unpack_columns

MAX_WAITING_ROWS = 1 << 26
"""Maximum number of waiting rows: some 2 GB in the file."""

MEMORY_ROWS = 1 << 16
"""Rows that wait in memory, some 2 MB; others are in the file."""


class _Part(NamedTuple):
    """
    Columns that wait.

    Attributes:
        unnamed: The topic ids whose names they wait for.
        rows: Number of rows.
        packed: The columns; None: the next ones in the file.
    """

    unnamed: set[UUID]
    rows: int
    packed: Columns | None


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
        self._waiting: deque[_Part] = deque()
        self._rows = self._memory_rows = 0
        self._file: IO[bytes] | None = None
        self._read_at = self._write_at = 0

    def add(self, part: Columns) -> Iterator[Columns]:
        """Add the next part; yield those with known names, in order."""
        names, waiting = self._names, self._waiting
        unnamed = _unnamed_ids(part, names)
        if not waiting and not unnamed:
            yield with_names(part, names)
            return
        self._append(unnamed, part)
        if self._rows > self._max_rows:
            names.read_ahead()
        while waiting and not (names.can_read_ahead and waiting[0].unnamed - names.by_id.keys()):
            yield self._take()

    def finish(self) -> Iterator[Columns]:
        """Yield the parts that still wait, after the end of the capture."""
        self._names.mark_complete()
        while self._waiting:
            yield self._take()

    def _append(self, unnamed: set[UUID], part: Columns) -> None:
        rows, packed = row_count(part), pack_columns(part)
        in_memory = self._memory_rows + rows <= MEMORY_ROWS
        self._waiting.append(_Part(unnamed, rows, packed if in_memory else None))
        self._rows += rows
        if in_memory:
            self._memory_rows += rows
        else:
            self._write(packed)

    def _take(self) -> Columns:
        """Return the first part that waits, with the names known so far."""
        part = self._waiting.popleft()
        self._rows -= part.rows
        if part.packed is not None:
            self._memory_rows -= part.rows
        return with_names(unpack_columns(part.packed or self._read()), self._names)

    def _write(self, packed: Columns) -> None:
        if self._file is None:
            self._file = TemporaryFile(prefix="kafkashark-")  # noqa: SIM115  (until the end)
            finalize(self, self._file.close)
        self._file.seek(self._write_at)
        pickle.dump(packed, self._file, pickle.HIGHEST_PROTOCOL)
        self._write_at = self._file.tell()

    def _read(self) -> Columns:
        """Return the next columns of the file; once all are read its room is used again."""
        assert self._file is not None
        self._file.seek(self._read_at)
        packed: Columns = pickle.load(self._file)
        self._read_at = self._file.tell()
        if self._read_at == self._write_at:
            self._read_at = self._write_at = 0
            self._file.truncate(0)
        return packed


def _unnamed_ids(part: Columns, names: TopicNames) -> set[UUID]:
    """Return the topic ids without a name so far, if a name may follow."""
    topics = part.get("topics")
    if not names.can_read_ahead or not isinstance(topics, Coded):
        return set()
    ids = {topic for each in topics.values for topic in each if isinstance(topic, UUID)}
    return ids - names.by_id.keys()
