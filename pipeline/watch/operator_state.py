"""
What one part of a watch keeps between batches of files, and what it does with the next.

It is bounded by what goes on at a time: some 600 bytes for each connection that is open or was
closed a minute ago, the bytes of unfinished frames, requests that wait (`engine.open` says how many
at most), what waits behind holes (256 MB at most), incomplete datagrams of IP (64 MB at most) and a
megabyte that is sorted out later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dissector.engine.reading.segment_source import FileNames
from pipeline.split.shards import merge_segments, renumbered
from pipeline.split.split_fragments import SplitDatagrams
from pipeline.split.task_spill import TaskOutputWriter, read_shards
from pipeline.storage.atomic_files import join_path
from pipeline.tables.incremental import IncrementalDissection
from pipeline.tables.table_builder import Batch, Wanted
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.arrivals import Arrivals
from pipeline.watch.ingest import FILE_PART, FILES, block_location

MIN_FILE_NAMES = 1000
"""Of so many files back the names are known at least: bytes of them may wait behind a hole."""

CLOSED_NS = 60_000_000_000
"""How long a closed connection is kept. Source: TIME_WAIT of Linux is 60 seconds."""

IngestRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """
    What all parts know.

    Attributes:
        work: The folder for what tasks leave.
        wanted: Which tables.
        parts: How many parts there are.
        idle_ns: A connection that is silent for longer has ended.
    """

    work: str
    wanted: Wanted
    parts: int
    idle_ns: int


@dataclass(slots=True)
class OperatorState:
    """
    What is kept of one part.

    Attributes:
        arrivals: The files that came; every part knows them all, and numbers them alike.
        saved: The connections that are open.
        starts: The first packets of files.
        names: Their names.
        split_datagrams: Fragments of IP that were not whole at the end of their file.
    """

    arrivals: Arrivals = field(default_factory=Arrivals)
    saved: bytes | None = None
    starts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    split_datagrams: SplitDatagrams = field(default_factory=SplitDatagrams)

    def process_files(
        self, part: int, notes: list[IngestRow], setting: WatchSettings
    ) -> list[IngestRow]:
        """Take what came for a part; leave rows, and return notes of them."""
        # Spark gives files twice where the name of another that came with them is a pattern.
        notes = [*{(each["path"], each["number"], each["left"]): each for each in notes}.values()]
        files = {note["path"]: note for note in notes}
        taken = self.arrivals.add_files(files.values())
        if part != FILE_PART:
            return [self._fold(part, taken, notes, setting)]
        left = [note for note in notes if note["left"] is not None]
        return [*left, *_tell(taken, setting)]

    def _fold(
        self, part: int, taken: list[IngestRow], notes: list[IngestRow], setting: WatchSettings
    ) -> dict[str, Any]:
        """Dissect the parcels of files, which are in their order; leave the rows."""
        files = FileNames()
        files.starts, files.names = self.starts, self.names
        if self.saved is None:
            fold = IncrementalDissection(files, setting.wanted)
        else:
            fold = IncrementalDissection.load(self.saved, files, setting.wanted)
        folder, source = join_path(setting.work, f"part-{part}"), taken[0]["file"]
        rows = self._rows(part, fold, files, taken, notes, setting)
        tables = _leave(folder, source, rows)
        self.saved = fold.save()
        known = bisect_right(files.starts, fold.low_watermark) - 1
        known = max(min(known, len(files.starts) - MIN_FILE_NAMES), 0)
        self.starts, self.names = files.starts[known:], files.names[known:]
        return {"part": part, "source": source, "left": folder, "tables": sorted(tables)}

    def _rows(
        self,
        part: int,
        fold: IncrementalDissection,
        files: FileNames,
        taken: list[IngestRow],
        notes: list[IngestRow],
        setting: WatchSettings,
    ) -> Iterator[Batch]:
        """Yield the rows of file after file, so that it does not matter which came together."""
        loose = {note["path"]: note["loose"] for note in notes if note["loose"]}
        for each in taken:
            first = each["first_packet"]
            if each["packets"]:
                files.add(first, each["path"])
            mine = [note for note in notes if note["path"] == each["path"] and note["length"] > 0]
            places = [
                block_location(note) for note in sorted(mine, key=lambda note: int(note["number"]))
            ]
            found = read_shards(join_path(setting.work, FILES), places)
            parcels = (renumbered(parcel, first, each["clock_ns"]) for parcel in found)
            whole = self.split_datagrams.reassemble(
                loose.get(each["path"]), first, part, setting.parts
            )
            yield from fold.feed(merge_segments(parcels, whole))
            closed_ns = min(CLOSED_NS, setting.idle_ns)
            yield from fold.forget(
                each["latest_ns"] - setting.idle_ns, each["latest_ns"] - closed_ns
            )


def _tell(taken: Iterable[Mapping[str, Any]], setting: WatchSettings) -> Iterator[IngestRow]:
    """Leave rows of files that are late or missing."""
    rows = [
        {"capture": each["path"], "kind": "file", "problem": each["problem"]}
        for each in taken
        if each["problem"] is not None
    ]
    if rows and "problems" in setting.wanted.tables:
        folder, source = join_path(setting.work, "arrivals"), next(iter(taken))["file"]
        with TaskOutputWriter(folder, source) as leaving:
            batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMAS["problems"])
            leaving.write_rows("problems", batch)
        yield {"part": FILE_PART, "source": source, "left": folder, "tables": ["problems"]}


def _leave(folder: str, source: int, batches: Iterable[Batch]) -> set[str]:
    tables = set()
    with TaskOutputWriter(folder, source) as leaving:
        for table, batch in batches:
            tables.add(table)
            leaving.write_rows(table, batch)
    return tables
