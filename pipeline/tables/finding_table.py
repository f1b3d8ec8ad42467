"""What stands out in a collection, as `findings` finds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from dissector.engine.reading.capture import Capture, Window
from dissector.query.selection import Selection
from findings.gather.capture_pass import CapturePass, Scope
from findings.output.finding_rows import finding_row
from findings.public import finished_report
from findings.sources.finding_source import select_sources
from pipeline.tables.table_builder import Batch, TableOptions
from pipeline.tables.table_schemas import FINDINGS, SCHEMAS


class FindingMaker:
    """Makes the findings; a `WholeMaker`."""

    def __init__(self, capture: Capture, options: TableOptions) -> None:
        self._secrets = options.show_secrets
        scope = Scope(show_secrets=options.show_secrets, thresholds=options.thresholds)
        self._found = CapturePass(capture, Selection(capture), scope)

    def add(self, window: Window) -> tuple[Batch, ...]:
        """Read a window; return no rows."""
        self._found.add(window)
        return ()

    def finish(self) -> Iterator[Batch]:
        """Yield the findings, the worst first."""
        sources = select_sources((), ())
        report = finished_report(self._found, sources, show_secrets=self._secrets)
        rows = list(flat_rows(map(finding_row, report.findings)))
        yield FINDINGS, pa.RecordBatch.from_pylist(rows, schema=SCHEMAS[FINDINGS])


def flat_rows(rows: Iterable[Mapping[str, Any]], owner: str | None = None) -> Iterator[Any]:
    """Yield findings, each with those that are joined to it behind it."""
    for row in rows:
        yield {**row, "joined_to": owner}
        yield from flat_rows(row["joined"], row["id"])
