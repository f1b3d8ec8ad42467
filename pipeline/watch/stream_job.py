"""
A watched folder: the files of a capture host are processed as they arrive, each once.

    files -> shards -> [earlier files, open connections; by parts] -> tables

Brackets mark Spark's operator state. A file must be moved into the folder when it is
complete. The names of a batch's files depend only on the batch: a retry after a failure overwrites
them, and no row is duplicated.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from glob import has_magic
from itertools import groupby
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from dissector.errors import UsageError
from pipeline.jobs.session import has_reader
from pipeline.jobs.worker import begin_task
from pipeline.split.task_spill import read_rows, read_rows_of
from pipeline.storage.atomic_files import (
    atomic_write,
    has_files,
    is_folder,
    join_path,
    remove_folder,
)
from pipeline.storage.filesystems import absolute, open_file
from pipeline.storage.parquet_store import FOLDERS, TableWriter
from pipeline.storage.shared_folder import require_mark
from pipeline.tables.dissect_task import UNREAD
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.table_builder import Batch, TableOptions
from pipeline.watch.batch_facts import BatchFacts
from pipeline.watch.ingest import INGEST_SCHEMA, split_file
from pipeline.watch.late_names import LateNames, files_to_name, rewrite_with_names
from pipeline.watch.operator_state import OperatorState, WatchSettings

CHECKPOINT, WORK = "_checkpoint", "_work"

SETTINGS_FILE = "kafkashark.json"
"""The file in the checkpoint with the settings that can't change."""

STATE_FORM = 3
"""Number of the form of saved states; a change of what they hold increases it."""

MAX_FILES = 64
"""Maximum number of files processed together."""

TRIGGER_INTERVAL = "5 seconds"
"""Interval of listing the folder."""

LOCAL = re.compile("^file:/+")

MINUTE_NS = 60_000_000_000

IDLE_NS = 15 * MINUTE_NS
"""A connection that is silent for longer has ended; Kafka itself closes after ten minutes."""

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

_OUTPUT_COLUMNS = "group int, folder string, source long, tables array<string>"
_FILE_COLUMNS = "group int, path string"
_DONE = pa.schema({"group": pa.int32()})

Batches = Iterable[pa.RecordBatch]

Stage = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Watch:
    """
    Processes the files of a folder.

    Attributes:
        folder: The folder of incoming files.
        out: The folder of the tables, and of the state between batches.
        options: Tables to make, and options of dissection.
        files: Maximum number of files processed together.
        parts: In how many parts connections are dissected; 0: as many as the cluster has cores. It
            is fixed by the checkpoint.
        idle_ns: A connection that is silent for longer, by the times of packets, has ended.
        unread: Reasons why captures could not be read at all, as in `Made`; added as files arrive.
    """

    folder: str
    out: str
    options: TableOptions
    files: int = MAX_FILES
    parts: int = 0
    idle_ns: int = IDLE_NS
    unread: list[str] = field(default_factory=list)

    def start(self, spark: SparkSession, once: bool = False) -> StreamingQuery:
        """
        Start, or continue after an earlier watch with the same `out`.

        Args:
            spark: A session.
            once: Stop when all present files have been processed.

        Raises:
            UsageError: The folder does not exist, the earlier watch was of another release or had
                another number of parts, or Spark can't read the folder of files or of tables.
        """
        for path in (self.folder, self.out):
            if not has_reader(spark, path):
                raise UsageError(f"Spark can't read {path}, which --watch needs")
        if not (has_magic(self.folder) or is_folder(self.folder)):
            raise UsageError(f"--watch {self.folder}: no such folder")
        remove_folder(self._settings.work)  # left by a watch that was killed
        parts = self._fixed_parts(spark.sparkContext.defaultParallelism)
        watch = replace(self, out=absolute(self.out), parts=parts)
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        spark.conf.set("spark.sql.shuffle.partitions", str(watch.parts))
        writer = watch._outputs(spark).writeStream.foreachBatch(watch._write)
        writer = writer.option("checkpointLocation", join_path(self.out, CHECKPOINT))
        trigger = (
            writer.trigger(availableNow=True)
            if once
            else writer.trigger(processingTime=TRIGGER_INTERVAL)
        )
        return trigger.start()

    @property
    def _settings_file(self) -> str:
        return join_path(self.out, CHECKPOINT, SETTINGS_FILE)

    def _fixed_parts(self, cores: int) -> int:
        """Return the number of parts, fixed by the checkpoint."""
        path = self._settings_file
        if has_files(join_path(self.out, CHECKPOINT)):
            with open_file(path) as file:
                settings = json.loads(file.read())
            if settings.get("state_form") != STATE_FORM:
                raise UsageError(
                    f"{self.out} was begun by another release of kafkashark, whose state this one "
                    "can't continue: watch into a new folder"
                )
            stored = int(settings["parts"])
            if self.parts not in (0, stored):
                raise UsageError(f"{self.out} was started with {stored} parts, not {self.parts}")
            # A batch that failed is written again in place.
            if (before := settings.get("folders", [*FOLDERS])) != [*self.options.folders]:
                raise UsageError(
                    f"{self.out} was started with {'/'.join(before)} as folders of tables, not "
                    f"{'/'.join(self.options.folders)}"
                )
            return stored
        parts = self.parts or cores
        with atomic_write(path) as file:
            fixed = {"parts": parts, "state_form": STATE_FORM, "folders": self.options.folders}
            file.write(json.dumps(fixed).encode())
        return parts

    def _outputs(self, spark: SparkSession) -> DataFrame:
        """Return the outputs of each batch of files."""
        files = (
            spark.readStream.format("binaryFile")
            .schema("path string, modificationTime timestamp, length long, content binary")
            .option("maxFilesPerTrigger", str(self.files))
            .load(self.folder)
            .select("path")
        )
        rows = files.mapInArrow(self.divide, from_arrow_schema(INGEST_SCHEMA))
        return rows.groupBy("part").applyInPandasWithState(
            self.fold,
            from_arrow_schema(INGEST_SCHEMA),
            "saved binary",
            "append",
            GroupStateTimeout.NoTimeout,
        )

    @property
    def _settings(self) -> WatchSettings:
        # The table of connections is always made: it identifies obsolete numbers.
        options = replace(self.options, tables=self.options.tables | {"connections"})
        return WatchSettings(join_path(self.out, WORK), options, self.parts, self.idle_ns)

    def divide(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Write the shards of files, and rows of their problems."""
        begin_task()
        require_mark(self._settings_file, self.out)
        settings = self._settings
        for batch in tasks:
            for path in batch.column("path").to_pylist():
                yield from split_file(
                    _local_path(path), settings.work, settings.parts, settings.options
                )

    def fold(
        self, key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """Process the rows of one part: dissect it, and update its state."""
        rows = [row for frame in frames for row in frame.to_dict("records")]
        operator_state = pickle.loads(state.get[0]) if state.exists else OperatorState()
        outputs = operator_state.process_files(int(key[0]), rows, self._settings)
        state.update((pickle.dumps(operator_state),))
        yield pd.DataFrame(outputs, columns=INGEST_SCHEMA.names)

    def _write(self, outputs: DataFrame, batch: int) -> None:
        """Write the rows of a batch of files."""
        spark = outputs.sparkSession
        outputs = outputs.persist()
        try:
            locations = [(row["folder"], row["source"], row["tables"]) for row in outputs.collect()]
            facts = BatchFacts.of(self.out, batch, locations)
            for each in read_rows_of(locations, UNREAD):
                self.unread.extend(each.column("reason").to_pylist())
            # The number of files must not depend on the cluster, so that a retry overwrites all.
            rows = [(at % self.parts, *location) for at, location in enumerate(locations)]
            writer = BatchWriter(self.out, batch, self.options, facts)
            self._run(spark, rows, _OUTPUT_COLUMNS, writer.write)
            paths = files_to_name(self.out, batch, facts.new_names)
            files = [(at % self.parts, path) for at, path in enumerate(paths)]
            if files:
                self._run(spark, files, _FILE_COLUMNS, writer.name)
            remove_folder(self._settings.work)
        finally:
            outputs.unpersist()

    def _run(self, spark: SparkSession, rows: list[Any], schema: str, stage: Stage) -> None:
        """Run tasks, each with the rows of a group."""
        tasks = spark.createDataFrame(rows, schema).repartitionById(self.parts, F.col("group"))
        tasks.mapInArrow(stage, from_arrow_schema(_DONE)).collect()


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """
    Writes tables of one batch of files.

    Attributes:
        out: The folder of the tables.
        batch: The number of the batch.
        options: Tables to make, and options of dissection.
        facts: The facts known with the batch.
    """

    out: str
    batch: int
    options: TableOptions
    facts: BatchFacts

    def write(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Write the outputs of tasks, by groups."""
        begin_task()
        options = self.options
        finisher = self.facts.row_finisher(options.show_secrets, options.values)
        rows = (row for batch in tasks for row in batch.to_pylist())
        for group, of_group in groupby(rows, lambda row: row["group"]):
            name = f"{self.batch:08d}-{group:04d}"
            late_names = LateNames(name, options.folders)
            with TableWriter(self.out, name, folders=options.folders) as writer:
                for table, batch in self._batches(of_group):
                    finished = finisher(table, batch)
                    writer.add(table, finished)
                    late_names.collect(table, finished, finisher.unnamed_topic_ids(table, batch))
            late_names.save(self.out)
            yield pa.RecordBatch.from_pylist([{"group": group}], _DONE)

    def _batches(self, rows: Iterable[dict[str, Any]]) -> Iterator[Batch]:
        """Yield the rows of the requested tables from outputs."""
        for row in rows:
            for table in sorted(self.options.tables & set(row["tables"])):
                for batch in read_rows(row["folder"], table, row["source"]):
                    yield table, batch

    def name(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Fill names that this batch has brought into files that were written before."""
        begin_task()
        options, names = self.options, self.facts.new_names
        finisher = RowFinisher(None, names, options.show_secrets, values=options.values)
        for batch in tasks:
            for row in batch.to_pylist():
                rewrite_with_names(self.out, row["path"], finisher)
                yield pa.RecordBatch.from_pylist([{"group": row["group"]}], _DONE)


def _local_path(path: str) -> str:
    """Return the local path that Spark gives as `file:/a b`, or the URI."""
    return LOCAL.sub("/", path)
