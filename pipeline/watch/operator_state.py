"""
The state of one part of a watch between batches of files, and the processing of a batch.

Its size is bounded by work in progress: some 600 bytes for each connection that is open or was
closed a minute ago, the bytes of incomplete frames, requests in flight (`engine.open` has the
limit), segments after gaps (256 MB at most), incomplete IP datagrams (64 MB at most) and a megabyte
of rows to sort.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa

from dissector.engine.reading.packet_files import FileNames
from dissector.errors import Problem
from pipeline.split.shards import merge_segments, renumbered
from pipeline.split.split_fragments import SplitDatagrams
from pipeline.split.task_spill import TaskOutputWriter, read_shards
from pipeline.storage.atomic_files import join_path
from pipeline.tables.event_table import IncrementalEvents
from pipeline.tables.incremental import IncrementalDissection
from pipeline.tables.table_builder import Batch, TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.arrivals import Arrivals
from pipeline.watch.ingest import FILE_PART, FILES, LOG_PART, block_location
from pipeline.watch.log_feed import LogFeed, is_text

MIN_FILE_NAMES = 1000
"""The names of at least this many files are kept: their bytes may wait behind a hole."""

CLOSED_NS = 60_000_000_000
"""Time for which a closed connection is kept. Source: TIME_WAIT of Linux is 60 seconds."""

IngestRow = dict[str, Any]

Steps: TypeAlias = IncrementalDissection | IncrementalEvents
"""The processing of a part's connections; the part behind the others finds events in all."""


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """
    Values shared by all parts.

    Attributes:
        work: The folder for outputs of tasks.
        options: Tables to make, and options of dissection.
        parts: Number of parts.
        idle_ns: A connection that is silent for longer has ended.
    """

    work: str
    options: TableOptions
    parts: int
    idle_ns: int


@dataclass(slots=True)
class OperatorState:
    """
    The state of one part.

    Attributes:
        arrivals: The files so far.
        saved: The saved dissection, with connections that are open.
        starts: The first packets of files.
        names: The names of these files.
        split_datagrams: IP fragments that were incomplete at the end of their file.
        log_feed: The request logs so far; of the part that gets them, and of that of events.
    """

    arrivals: Arrivals = field(default_factory=Arrivals)
    saved: bytes | None = None
    starts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    split_datagrams: SplitDatagrams = field(default_factory=SplitDatagrams)
    log_feed: LogFeed = field(default_factory=LogFeed)

    def process_files(
        self, part: int, rows: list[IngestRow], settings: WatchSettings
    ) -> list[IngestRow]:
        """Process a part's ingest rows; write table rows, return ingest rows about them."""
        # Spark lists a file twice if another name in the batch is a pattern that matches it.
        rows = [*{(each["path"], each["number"], each["folder"]): each for each in rows}.values()]
        files = {row["path"]: row for row in rows}
        added = self.arrivals.add_files(files.values())
        if part != FILE_PART:
            steps = IncrementalEvents if part == settings.parts else IncrementalDissection
            return [self._dissect(part, steps, added, rows, settings)]
        outputs = [row for row in rows if row["folder"] is not None]
        return [*outputs, *_report_arrivals(added, settings)]

    def _dissect(
        self,
        part: int,
        steps: type[Steps],
        added: list[IngestRow],
        rows: list[IngestRow],
        settings: WatchSettings,
    ) -> dict[str, Any]:
        """Process the shards of files in order; write the rows."""
        files = FileNames()
        files.starts, files.names = self.starts, self.names
        if self.saved is None:
            dissection = steps(files, settings.options)
        else:
            dissection = steps.load(self.saved, files, settings.options)
        dissection.logs.update(self.log_feed.logs)
        folder, source = join_path(settings.work, f"part-{part}"), added[0]["file"]
        batches = self._rows(part, dissection, files, added, rows, settings)
        tables = _write_batches(folder, source, batches)
        self.saved = dissection.save()
        first_kept = bisect_right(files.starts, dissection.low_watermark) - 1
        open_names = set(files.names[max(first_kept, 0) :])
        self.log_feed.logs = {
            path: each for path, each in dissection.logs.items() if path in open_names
        }
        first_kept = max(min(first_kept, len(files.starts) - MIN_FILE_NAMES), 0)
        self.starts, self.names = files.starts[first_kept:], files.names[first_kept:]
        return {"part": part, "source": source, "folder": folder, "tables": sorted(tables)}

    def _rows(
        self,
        part: int,
        dissection: Steps,
        files: FileNames,
        added: list[IngestRow],
        rows: list[IngestRow],
        settings: WatchSettings,
    ) -> Iterator[Batch]:
        """Yield the rows file by file, independently of the batches in which files arrived."""
        fragments = {row["path"]: row["fragments"] for row in rows if row["fragments"]}
        for file in added:
            first = file["first_packet"]
            if file["packets"]:
                files.add(first, file["path"])
            own_rows = [row for row in rows if row["path"] == file["path"] and row["length"] > 0]
            locations = [
                block_location(row) for row in sorted(own_rows, key=lambda row: int(row["number"]))
            ]
            stored = read_shards(join_path(settings.work, FILES), locations)
            stored = self._converted(file["path"], stored, dissection, settings)
            shards = (renumbered(shard, first, file["clock_ns"]) for shard in stored)
            among = (0, 1) if part == settings.parts else (part, settings.parts)
            reassembled = self.split_datagrams.reassemble(
                fragments.get(file["path"]), first, *among
            )
            packets = first + int(file["packets"])
            yield from dissection.feed(merge_segments(shards, reassembled), packets)
            problems = self.log_feed.take_problems()
            if problems and part == LOG_PART and "problems" in settings.options.tables:
                yield "problems", _problem_rows(problems)
            closed_ns = min(CLOSED_NS, settings.idle_ns)
            yield from dissection.forget(
                file["latest_ns"] - settings.idle_ns, file["latest_ns"] - closed_ns
            )
            self.log_feed.forget(file["latest_ns"] - settings.idle_ns)

    def _converted(
        self,
        path: str,
        shards: Iterator[pa.RecordBatch],
        dissection: Steps,
        settings: WatchSettings,
    ) -> Iterator[pa.RecordBatch]:
        """Return the shards of a file; those of a log are made of its text."""
        first = next(shards, None)
        if first is None:
            return iter(())
        shards = chain([first], shards)
        if not is_text(first):
            return shards
        return self.log_feed.shards(path, shards, dissection.logs, settings.options.timezone)


def _problem_rows(problems: Iterable[tuple[str, Problem]]) -> pa.RecordBatch:
    """Return problems of files."""
    rows = [
        {"capture": path, "kind": "file", "problem": each.what, "position": each.position}
        for path, each in problems
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMAS["problems"])


def _report_arrivals(
    added: Iterable[Mapping[str, Any]], settings: WatchSettings
) -> Iterator[IngestRow]:
    """Write problem rows of files that are late or missing."""
    rows = [
        {"capture": each["path"], "kind": "file", "problem": each["problem"]}
        for each in added
        if each["problem"] is not None
    ]
    if rows and "problems" in settings.options.tables:
        folder, source = join_path(settings.work, "arrivals"), next(iter(added))["file"]
        with TaskOutputWriter(folder, source) as output:
            batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMAS["problems"])
            output.write_rows("problems", batch)
        yield {"part": FILE_PART, "source": source, "folder": folder, "tables": ["problems"]}


def _write_batches(folder: str, source: int, batches: Iterable[Batch]) -> set[str]:
    tables = set()
    with TaskOutputWriter(folder, source) as output:
        for table, batch in batches:
            tables.add(table)
            output.write_rows(table, batch)
    return tables
