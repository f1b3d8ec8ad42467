"""What a job is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.split.byte_ranges import RANGE_BYTES
from pipeline.tables.table_builder import TableOptions


@dataclass(frozen=True, slots=True)
class Request:
    """
    A job's captures, output and options.

    Attributes:
        captures: Paths, folders, patterns.
        out: The folder of the tables.
        options: Tables to make, and options of dissection.
        range_bytes: Size of a task's range.
        parts: Number of parts for connections across ranges; 0 selects as many as fit.
        overwrite: Whether existing tables are replaced.
        resume: Whether an unfinished job in `out` is continued: the same, that was ended before.
        summaries: Whether the summaries are made too.
        format: `parquet`, or `delta` or `iceberg`; see `lakehouse`.
    """

    captures: Sequence[str]
    out: str
    options: TableOptions
    range_bytes: int = RANGE_BYTES
    parts: int = 0
    overwrite: bool = False
    resume: bool = False
    summaries: bool = False
    format: str = "parquet"
