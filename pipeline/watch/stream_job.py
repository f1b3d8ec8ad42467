"""
A folder where a capture host drops its files: they are taken as they come, each once.

    files -> parcels -> [files before, open connections; by parts] -> tables

What is in brackets is kept by Spark's state. A file is moved into the folder when it is whole. The
rows of a batch of files are written under names that the batch gives, so that a batch which is
tried again after a failure writes them again, and nothing is there twice.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
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
from pipeline.jobs.worker import freeze_garbage
from pipeline.split.task_spill import read_rows
from pipeline.storage.atomic_files import (
    atomic_write,
    has_files,
    is_folder,
    join_path,
    remove_folder,
)
from pipeline.storage.filesystems import open_file
from pipeline.storage.parquet_store import TableWriter
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.table_builder import Batch, Wanted
from pipeline.watch.batch_facts import BatchFacts
from pipeline.watch.ingest import INGEST_SCHEMA, split_file
from pipeline.watch.late_names import LateNames, files_to_name, rewrite_with_names
from pipeline.watch.operator_state import OperatorState, WatchSettings

CHECKPOINT, WORK = "_checkpoint", "_work"

SETTING = "kafkashark.json"
"""The file in the checkpoint with what a watch stays with."""

FILES = 64
"""How many files are taken together at most."""

EVERY = "5 seconds"
"""How often the folder is looked at."""

LOCAL = re.compile("^file:/+")

MINUTE_NS = 60_000_000_000

IDLE_NS = 15 * MINUTE_NS
"""A connection that is silent for longer has ended; Kafka's own close after ten minutes."""

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

_ROWS_LEFT = "group int, left string, source long, tables array<string>"
_FILES_LEFT = "group int, path string"
_DONE = pa.schema({"group": pa.int32()})

Batches = Iterable[pa.RecordBatch]

Stage = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Watch:
    """
    Takes the files of a folder.

    Attributes:
        folder: Where they come.
        out: Where the tables go, and beside them what is kept between files.
        wanted: Which tables.
        files: How many files are taken together at most.
        parts: In how many parts connections are dissected; 0: as many as the cluster has cores.
            A checkpoint stays with it.
        idle_ns: A connection that is silent for longer, by the times of packets, has ended.
    """

    folder: str
    out: str
    wanted: Wanted
    files: int = FILES
    parts: int = 0
    idle_ns: int = IDLE_NS

    def start(self, spark: SparkSession, once: bool = False) -> StreamingQuery:
        """
        Begin, or go on where an earlier watch with the same `out` ended.

        Args:
            spark: A session.
            once: End when all that is there was taken.

        Raises:
            UsageError: There is no such folder, the earlier watch had another number of parts, or
                Spark has no reader of where files come or tables go.
        """
        for path in (self.folder, self.out):
            if not has_reader(spark, path):
                raise UsageError(
                    f"--watch needs a reader of Spark's own, which it lacks, for {path}"
                )
        if not (has_magic(self.folder) or is_folder(self.folder)):
            raise UsageError(f"--watch {self.folder}: there is no such folder")
        remove_folder(self._setting.work)  # of a watch that was killed
        watch = replace(self, parts=self._settled(spark.sparkContext.defaultParallelism))
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        spark.conf.set("spark.sql.shuffle.partitions", str(watch.parts))
        writer = watch._notes(spark).writeStream.foreachBatch(watch._write)
        writer = writer.option("checkpointLocation", join_path(self.out, CHECKPOINT))
        trigger = (
            writer.trigger(availableNow=True) if once else writer.trigger(processingTime=EVERY)
        )
        return trigger.start()

    def _settled(self, cores: int) -> int:
        """Return the number of parts, which the checkpoint keeps."""
        folder = join_path(self.out, CHECKPOINT)
        path = join_path(folder, SETTING)
        if has_files(folder):
            with open_file(path) as file:
                kept = int(json.loads(file.read())["parts"])
            if self.parts not in (0, kept):
                raise UsageError(f"{self.out} was begun with {kept} parts, not {self.parts}")
            return kept
        parts = self.parts or cores
        with atomic_write(path) as file:
            file.write(json.dumps({"parts": parts}).encode())
        return parts

    def _notes(self, spark: SparkSession) -> DataFrame:
        """Return what was left of the rows of each batch of files."""
        files = (
            spark.readStream.format("binaryFile")
            .schema("path string, modificationTime timestamp, length long, content binary")
            .option("maxFilesPerTrigger", str(self.files))
            .load(self.folder)
            .select("path")
        )
        parcels = files.mapInArrow(self.divide, from_arrow_schema(INGEST_SCHEMA))
        return parcels.groupBy("part").applyInPandasWithState(
            self.fold,
            from_arrow_schema(INGEST_SCHEMA),
            "saved binary",
            "append",
            GroupStateTimeout.NoTimeout,
        )

    @property
    def _setting(self) -> WatchSettings:
        # Connections are always wanted: by them it is known which numbers are wanted no more.
        wanted = replace(self.wanted, tables=self.wanted.tables | {"connections"})
        return WatchSettings(join_path(self.out, WORK), wanted, self.parts, self.idle_ns)

    def divide(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Leave the parcels of files, and rows of what is wrong with them."""
        freeze_garbage()
        setting = self._setting
        for batch in tasks:
            for path in batch.column("path").to_pylist():
                yield from split_file(_plain(path), setting.work, setting.parts, setting.wanted)

    def fold(
        self, key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """Take what came for one part: dissect it, and keep what is open."""
        notes = [row for frame in frames for row in frame.to_dict("records")]
        kept = pickle.loads(state.get[0]) if state.exists else OperatorState()
        left = kept.process_files(int(key[0]), notes, self._setting)
        state.update((pickle.dumps(kept),))
        yield pd.DataFrame(left, columns=INGEST_SCHEMA.names)

    def _write(self, notes: DataFrame, batch: int) -> None:
        """Write the rows of a batch of files."""
        spark = notes.sparkSession
        notes = notes.persist()
        try:
            places = [(row["left"], row["source"], row["tables"]) for row in notes.collect()]
            known = BatchFacts.of(self.out, batch, places)
            # As many files as ever, whatever the cluster: tried again, all are written over.
            rows = [(at % self.parts, *place) for at, place in enumerate(places)]
            writing = BatchWriter(self.out, batch, self.wanted, known)
            self._run(spark, rows, _ROWS_LEFT, writing.write)
            paths = files_to_name(self.out, batch, known.new_names)
            files = [(at % self.parts, path) for at, path in enumerate(paths)]
            if files:
                self._run(spark, files, _FILES_LEFT, writing.name)
            remove_folder(self._setting.work)
        finally:
            notes.unpersist()

    def _run(self, spark: SparkSession, rows: list[Any], schema: str, stage: Stage) -> None:
        """Run tasks, of which each has the rows of a group."""
        tasks = spark.createDataFrame(rows, schema).repartitionById(self.parts, F.col("group"))
        tasks.mapInArrow(stage, from_arrow_schema(_DONE)).collect()


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """
    Writes tables of one batch of files.

    Attributes:
        out: Where they go.
        batch: Its number.
        wanted: Which tables.
        known: What is known with it.
    """

    out: str
    batch: int
    wanted: Wanted
    known: BatchFacts

    def write(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Write what tasks have left, by groups."""
        freeze_garbage()
        finish = self.known.row_finisher(self.wanted.show_secrets)
        rows = (row for batch in tasks for row in batch.to_pylist())
        for group, of_group in groupby(rows, lambda row: row["group"]):
            name = f"{self.batch:08d}-{group:04d}"
            nameless = LateNames(name)
            with TableWriter(self.out, name) as store:
                for table, batch in self._left(of_group):
                    finished = finish(table, batch)
                    store.add(table, finished)
                    nameless.collect(table, finished, finish.unnamed_topic_ids(table, batch))
            nameless.save(self.out)
            yield pa.RecordBatch.from_pylist([{"group": group}], _DONE)

    def _left(self, rows: Iterable[dict[str, Any]]) -> Iterator[Batch]:
        """Yield what was left of the tables that are wanted."""
        for row in rows:
            for table in sorted(self.wanted.tables & set(row["tables"])):
                for batch in read_rows(row["left"], table, row["source"]):
                    yield table, batch

    def name(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Put names that the batch has told into files that were written before."""
        freeze_garbage()
        finish = RowFinisher(None, self.known.new_names, self.wanted.show_secrets)
        for batch in tasks:
            for row in batch.to_pylist():
                rewrite_with_names(self.out, row["path"], finish)
                yield pa.RecordBatch.from_pylist([{"group": row["group"]}], _DONE)


def _plain(path: str) -> str:
    """Return the path of this machine that Spark gives as `file:/a b`, or the URI."""
    return LOCAL.sub("/", path)
