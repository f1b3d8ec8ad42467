"""What the Fetch exchanges of a window say of their sessions, read from the tape."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.fetch_content import FetchContent, Partition, PartitionOffsets
from conform.registry.screened_columns import Bools, Partitions, ScreenedPartitions
from conform.screens.window_results import topic_names

Ints: TypeAlias = NDArray[np.int64]


class WindowSessions:
    """
    The contents of those Fetch exchanges of which columns show all that concerns their session.

    Args:
        partitions: The columns of all exchanges.
        is_canonical: Whether the messages of an exchange are canonical.
    """

    def __init__(self, partitions: ScreenedPartitions, is_canonical: Bools) -> None:
        sessions, response = partitions.sessions, partitions.response
        is_known = is_canonical & sessions.is_known
        self._is_known: list[bool] = is_known.tolist()
        self._asked = _Items(partitions, partitions.request, is_known)
        self._answered = _Items(partitions, response, is_known)
        chosen = self._answered.rows
        first_end = np.append(partitions.batches.first_end, 0)[partitions.fields_of(response)]
        has_records = response.records[chosen] > 0
        self._offsets: list[int] = partitions.request.offset[self._asked.rows].tolist()
        self._error: list[int] = response.error[chosen].tolist()
        self._high_watermark: list[int] = response.offset[chosen].tolist()
        self._log_start: list[int] = response.start[chosen].tolist()
        self._first_end: list[int | None] = [
            end if has else None
            for end, has in zip(first_end[chosen].tolist(), has_records.tolist(), strict=True)
        ]
        columns = sessions.session_id, sessions.epoch, sessions.answered_id
        self._numbers = list(zip(*(each.tolist() for each in columns), strict=True))

    def of(self, row: int) -> FetchContent | None:
        """Return what an exchange says; None if only its decoded messages show it."""
        if not self._is_known[row]:
            return None
        session_id, epoch, answered_id = self._numbers[row]
        asked, answered = self._asked.of(row), self._answered.of(row)
        offsets = dict(zip(self._asked.keys[asked], self._offsets[asked], strict=True))
        answers = [
            (key, None if error else PartitionOffsets(high_watermark, start))
            for key, error, high_watermark, start in zip(
                self._answered.keys[answered],
                self._error[answered],
                self._high_watermark[answered],
                self._log_start[answered],
                strict=True,
            )
        ]
        ends = self._first_end[answered]
        return FetchContent(session_id, epoch, offsets, (), answered_id, answers, ends)


class _Items:
    """
    The partitions of chosen exchanges in one side's messages.

    Attributes:
        rows: Their rows among all of this side.
        keys: Their topics and numbers.
    """

    def __init__(self, partitions: ScreenedPartitions, side: Partitions, is_chosen: Bools) -> None:
        table = partitions.rows.table
        self.rows: Ints = np.flatnonzero(is_chosen[side.row])
        names, numbers = topic_names(table, side, self.rows), side.number[self.rows].tolist()
        self.keys: list[Partition] = list(zip(names, numbers, strict=True))
        bounds = np.searchsorted(side.row[self.rows], np.arange(len(table) + 1))
        self._bounds: list[int] = bounds.tolist()

    def of(self, row: int) -> slice:
        """Return where the partitions of an exchange are."""
        return slice(*self._bounds[row : row + 2])
