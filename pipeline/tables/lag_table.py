"""The lag of groups by interval, as `groups --interval` gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from dissector.engine.reading.capture import Capture, Window
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.summary.groups_reader import GroupsReader
from dissector.summary.lag_intervals import LagIntervals
from pipeline.tables.table_builder import Batch, TableOptions
from pipeline.tables.table_schemas import SCHEMAS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LagMaker:
    """Makes the lag of groups, and of their partitions; a `WholeMaker`."""

    def __init__(self, capture: Capture, options: TableOptions) -> None:
        self._capture = capture
        self._lags = LagIntervals(capture, options.lag_interval_s)
        self._groups = GroupsReader(capture, None, self._lags.count_members)

    def add(self, window: Window) -> tuple[Batch, ...]:
        """Read a window; return no rows."""
        self._groups.add(window)
        self._lags.add(window)
        return ()

    def finish(self) -> Iterator[Batch]:
        """Yield the rows of all intervals."""
        for table, rows in self._lags.sections().items():
            masked = mask_texts(rows, self._capture.logins.all)
            timed = [_with_ns(row) for row in masked]
            yield table, pa.RecordBatch.from_pylist(timed, schema=SCHEMAS[table])


def _with_ns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its time as a number."""
    since = datetime.fromisoformat(row["time"]).replace(tzinfo=UTC) - _EPOCH
    return {"time_ns": since // timedelta(microseconds=1) * 1000, **row}
