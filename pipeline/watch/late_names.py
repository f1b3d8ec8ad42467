"""
Rows that were written before the names of their topics were known, and the update of their files.

The files with such rows are listed beside the tables, in a file for each task that wrote some. The
batch with the name rewrites these files, each under its own name. A retry does the same: no row is
lost or duplicated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import locate
from pipeline.storage.parquet_store import FOLDERS, GROUP_ROWS, partition_path, split_by_partition
from pipeline.tables.finalize import RowFinisher, ids_in_texts
from pipeline.tables.table_schemas import EVENTS

FOLDER = "_nameless"

_SCHEMA = pa.schema({"topic_id": pa.string(), "path": pa.string()})
"""
The id of a topic, and a file, relative to the folder of the tables, that has it in place of
a name.
"""


class LateNames:
    """Collects the ids without names in the rows that one task writes."""

    def __init__(self, name: str, folders: Sequence[str] = FOLDERS) -> None:
        """Start; `name` and `folders` are those of the task's files, see `TableWriter`."""
        self._name = name
        self._folders = folders
        self._found: set[tuple[str, str]] = set()

    def collect(self, table: str, rows: pa.RecordBatch, ids: Collection[str]) -> None:
        """Collect unresolved ids from rows of a table."""
        if ids:
            for partition, part in split_by_partition(rows):
                path = partition_path(table, partition, self._name, self._folders)
                self._found.update((each, path) for each in _ids_of(table, part) & set(ids))

    def save(self, out: str) -> None:
        """Save the collected ids beside the tables."""
        if self._found:
            columns = [pa.array(each) for each in zip(*sorted(self._found), strict=True)]
            with atomic_write(join_path(out, FOLDER, f"{self._name}.parquet")) as file:
                pq.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA), file)


def _ids_of(table: str, rows: pa.RecordBatch) -> set[str]:
    """Return texts that may be ids of topics without a name."""
    if table == "records":
        return set(rows.filter(pc.is_null(rows.column("topic"))).column("topic_id").to_pylist())
    if table == EVENTS:
        return ids_in_texts(rows)
    return set(pc.list_flatten(rows.column("topics")).unique().to_pylist())


def files_to_name(out: str, batch: int, ids: Collection[str]) -> list[str]:
    """Return the files of tables with these ids that earlier batches have written."""
    if not ids:
        return []
    wanted, found = pa.array(sorted(ids), pa.string()), set()
    system, folder = locate(join_path(out, FOLDER))
    for each in system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        if each.extension == "parquet" and int(each.base_name[:8]) < batch:
            with system.open_input_file(each.path) as file:
                stored = pq.read_table(file)
            found.update(stored.filter(pc.is_in(stored["topic_id"], wanted))["path"].to_pylist())
    return sorted(found)


def rewrite_with_names(out: str, path: str, finish: RowFinisher) -> None:
    """Rewrite a file of a table with names; a file that no longer exists is ignored."""
    table = path.partition("/")[0]
    target_path = join_path(out, path)
    folder, _, name = target_path.rpartition("/")
    temporary = join_path(folder, f"_{name}")
    system, inside = locate(target_path)
    if not _exists(system, inside):
        if not _exists(system, locate(temporary)[1]):
            return
        # An earlier rewrite was killed between removing and moving.
        system.move(locate(temporary)[1], inside)
    with system.open_input_file(inside) as source, atomic_write(temporary) as target:
        rows = pq.ParquetFile(source)
        with pq.ParquetWriter(target, rows.schema_arrow, compression="zstd") as writer:
            # One row group at a time, to bound memory.
            for group in range(rows.num_row_groups):
                for batch in rows.iter_batches(GROUP_ROWS, row_groups=[group]):
                    writer.write_batch(finish.fill_in_names(table, batch))
    # HDFS removes the old file first: a process killed in between leaves the temporary one.
    system.move(locate(temporary)[1], inside)


def _exists(system: fs.FileSystem, path: str) -> bool:
    return bool(system.get_file_info(path).type == fs.FileType.File)
