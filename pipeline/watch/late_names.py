"""
Rows that were written before the names of their topics were told, and how they get them.

Which files have such rows is kept beside the tables, a file for each task that wrote some. The
batch that tells a name writes those files again, each over itself. Tried again it does the same:
nothing is lost, and nothing is there twice.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import locate
from pipeline.storage.parquet_store import GROUP_ROWS, partition_path, split_by_partition
from pipeline.tables.finalize import RowFinisher

FOLDER = "_nameless"

_SCHEMA = pa.schema({"topic_id": pa.string(), "path": pa.string()})
"""The id of a topic, and a file, in the folder of the tables, in which it stands for its name."""


class LateNames:
    """Takes note of the ids without a name in the rows that one task writes."""

    def __init__(self, name: str) -> None:
        """Begin; `name` is that of the task's files."""
        self._name = name
        self._found: set[tuple[str, str]] = set()

    def collect(self, table: str, rows: pa.RecordBatch, ids: Collection[str]) -> None:
        """Look for ids in rows of a table, as they are written."""
        if ids:
            for place, part in split_by_partition(rows):
                path = partition_path(table, place, self._name)
                self._found.update((each, path) for each in _ids_of(table, part) & set(ids))

    def save(self, out: str) -> None:
        """Keep what was found beside the tables."""
        if self._found:
            columns = [pa.array(each) for each in zip(*sorted(self._found), strict=True)]
            with atomic_write(join_path(out, FOLDER, f"{self._name}.parquet")) as file:
                pq.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA), file)


def _ids_of(table: str, rows: pa.RecordBatch) -> set[str]:
    """Return what may be ids of topics without a name."""
    if table == "records":
        return set(rows.filter(pc.is_null(rows.column("topic"))).column("topic_id").to_pylist())
    return set(pc.list_flatten(rows.column("topics")).unique().to_pylist())


def files_to_name(out: str, batch: int, ids: Collection[str]) -> list[str]:
    """Return the files, in the folder of the tables, with ids that batches before one have left."""
    if not ids:
        return []
    wanted, found = pa.array(sorted(ids), pa.string()), set()
    system, folder = locate(join_path(out, FOLDER))
    for each in system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        if each.extension == "parquet" and int(each.base_name[:8]) < batch:
            with system.open_input_file(each.path) as file:
                kept = pq.read_table(file)
            found.update(kept.filter(pc.is_in(kept["topic_id"], wanted))["path"].to_pylist())
    return sorted(found)


def rewrite_with_names(out: str, path: str, finish: RowFinisher) -> None:
    """Write a file of a table again, with names; one that was taken away since is let be."""
    table = path.partition("/")[0]
    whole = join_path(out, path)
    folder, _, name = whole.rpartition("/")
    aside = join_path(folder, f"_{name}")
    system, inside = locate(whole)
    if not _is_there(system, inside):
        if not _is_there(system, locate(aside)[1]):
            return
        # Whoever was to put it there was ended before.
        system.move(locate(aside)[1], inside)
    with system.open_input_file(inside) as source, atomic_write(aside) as target:
        rows = pq.ParquetFile(source)
        with pq.ParquetWriter(target, rows.schema_arrow, compression="zstd") as writer:
            # A group at a time, as they were written: no more of them is in memory.
            for group in range(rows.num_row_groups):
                for batch in rows.iter_batches(GROUP_ROWS, row_groups=[group]):
                    writer.write_batch(finish.fill_in_names(table, batch))
    # HDFS takes away what was there first: whoever is ended between leaves the other.
    system.move(locate(aside)[1], inside)


def _is_there(system: fs.FileSystem, path: str) -> bool:
    return bool(system.get_file_info(path).type == fs.FileType.File)
