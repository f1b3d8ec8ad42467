"""
Captures as a data source of Spark, for queries without written tables.

    from kafkashark import register

    register(spark)
    spark.read.format("kafka-capture").option("table", "exchanges").load("captures/demo.pcap")

Each query reads its captures: headers and names once, on the driver, each range in a task, and
data across ranges once more. A schema selects columns: only these are made. For repeated queries
write tables with a job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from dissector.capture.columns import Int64s, unique
from dissector.capture.packets.decode_as import tunnel_ports
from dissector.errors import PipelineError, UsageError
from dissector.protocol.context import using
from dissector.protocol.definitions.schemas import Schemas
from pipeline.jobs.local_job import Plan, plan_ranges
from pipeline.jobs.worker import begin_task
from pipeline.split.byte_ranges import RANGE_BYTES, Range, ranges_of
from pipeline.split.collection import find_captures
from pipeline.split.connection_keys import parts_of
from pipeline.tables.collection_facts import collection_facts
from pipeline.tables.decoded_columns import found_values
from pipeline.tables.dissect_task import UNREAD, dissect_again, dissect_range
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.row_choice import RowChoice
from pipeline.tables.shared_facts import ID_MARK, has_doubts
from pipeline.tables.table_builder import FACTS, Batch, TableOptions, found_keylogs
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.tables.whole_tables import WHOLE, whole_tables

FORMAT = "kafka-capture"

PARTS = 8
"""Most parts of the connections that are in more than one range."""

PART_BYTES = 64 << 20
"""Bytes of such connections for each part: every part reads all of their ranges."""

FEW = 2
"""Tasks that read the facts of the collection by themselves, as their rows may depend on none."""

ALL = -2

OPTIONS = (
    "path",
    "paths",
    "table",
    "fields",
    "ports",
    "keylogs",
    "decodeas",
    "rangemb",
    "schemas",
    "showsecrets",
    "values",
    "valueformats",
    "masks",
    "apis",
    "topics",
    "since",
    "until",
)


class KafkaCapture(DataSource):
    """
    The format `kafka-capture`.

    Options: `table`, a table of the pipeline, by default `exchanges`; `fields`, paths of the fields
    in the table of that name; `ports`, `showSecrets`, as in the commands; `rangeMb`, the size of a
    task's range; `keylogs`, TLS key logs that each worker can read, and `schemas`, JARs or folders
    of message definitions on the driver, both separated by commas; `values` and `valueFormats`, as
    of `--values` and `--value-format`, separated by commas; `masks`, as of `--mask`, separated by
    commas; `decodeAs`, rules as of `--decode-as`, separated by semicolons; `apis`, `topics`,
    separated by commas, `since` and `until`, the rows to read: see `RowChoice`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the table."""
        return from_arrow_schema(SCHEMAS[self._table])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the captures."""
        spark_options = self.options
        for name in spark_options:
            if name.lower() not in OPTIONS:
                raise UsageError(f"{FORMAT} has no option {name}")
        options = TableOptions(
            tables=frozenset((self._table,)),
            fields=frozenset(_split_list(spark_options.get("fields"))),
            ports=frozenset(
                int(_parse_number("ports", each))
                for each in _split_list(spark_options.get("ports"))
            ),
            keylogs=found_keylogs(_split_list(spark_options.get("keylogs"))),
            decode_as=_rules(spark_options.get("decodeAs")),
            show_secrets=_parse_bool("showSecrets", spark_options.get("showSecrets", "false")),
            schemas=Schemas.given(_split_list(spark_options.get("schemas"))),
            values=found_values(
                _split_list(spark_options.get("values")),
                _split_list(spark_options.get("valueFormats")),
                _split_list(spark_options.get("masks")),
            ),
        )
        if options.show_secrets and options.values is not None and options.values.masks:
            raise UsageError("masks and showSecrets exclude each other")
        with using(options.schemas):
            choice = RowChoice.of(
                self._table,
                _split_list(spark_options.get("apis")),
                _split_list(spark_options.get("topics")),
                spark_options.get("since"),
                spark_options.get("until"),
            )
        options = replace(options, choice=choice)
        range_mb = spark_options.get("rangeMb")
        range_bytes = (
            int(_parse_number("rangeMb", range_mb) * (1 << 20)) if range_mb else RANGE_BYTES
        )
        return CaptureReader(self._paths, self._table, options, range_bytes, self._columns(schema))

    def _columns(self, schema: StructType) -> list[str]:
        """Return the columns of a schema, which may be a part of the table's."""
        known = {each.name: each.dataType for each in self.schema()}
        for each in schema:
            if each.name not in known:
                raise UsageError(f"table {self._table} has no column {each.name}")
            if each.dataType != known[each.name]:
                is_, asked = (kind.simpleString() for kind in (known[each.name], each.dataType))
                raise UsageError(f"column {each.name} of {self._table} is {is_}, not {asked}")
        return schema.names

    @property
    def _table(self) -> str:
        table = self.options.get("table", "exchanges")
        if table not in SCHEMAS:
            raise UsageError(f"table takes {', '.join(SCHEMAS)}, not {table!r}")
        return table

    @property
    def _paths(self) -> list[str]:
        paths = [*json.loads(self.options.get("paths", "[]"))]
        if not paths and "path" not in self.options:
            raise UsageError("no captures found: load(PATH)")
        return paths or [self.options["path"]]


def _split_list(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _rules(text: str | None) -> tuple[str, ...]:
    rules = tuple(each.strip() for each in (text or "").split(";") if each.strip())
    tunnel_ports(rules)
    return rules


def _parse_number(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not number > 0:
        raise UsageError(f"{option} takes numbers above 0, not {text!r}")
    return number


def _parse_bool(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{option} takes true, false, not {text!r}")
    return text.lower() == "true"


@dataclass
class CapturePartition(InputPartition):
    """
    The input of one task: a range, or the connections of one part from their ranges.

    Attributes:
        ranges: The ranges to read.
        crossing: Keys of the connections that are in more than one range: a single range leaves
            them out; a part reads only these.
        part: The number of the part; -1: a range; `ALL`: all connections.
        facts: The facts of the whole collection; None: this task reads them, if its rows depend on
            any.
        collection: All ranges, if it may do so.
    """

    ranges: Sequence[Range]
    crossing: Int64s
    part: int = -1
    facts: Mapping[str, str] | None = None
    collection: Sequence[Range] = ()

    def batches(self, options: TableOptions) -> Iterator[Batch]:
        """Yield the rows of tables."""
        if not self.ranges:
            return iter(())
        if self.part == ALL:
            return whole_tables(self.ranges, options)
        if self.part < 0:
            return dissect_range(self.ranges[0], self.crossing, 0, options)
        return dissect_again(self.ranges, self.crossing, options)


NO_ROWS = CapturePartition([], np.zeros(0, np.int64))


class CaptureReader(DataSourceReader):
    """
    Reads a table of captures.

    It has no state of a query, and so no `pushFilters`: Spark up to 4.3 keeps the last reader that
    took filters with the table, and uses it for every scan of the DataFrame, whatever that scan's
    filters; a scan without any does not ask. So conditions are options, of one DataFrame.
    Source: `readInfo` of Spark's `PythonDataSourceV2`, set by `PythonScanBuilder.pushFilters`;
    Spark's main branch keeps it with the scan.
    """

    def __init__(
        self,
        paths: Sequence[str],
        table: str,
        options: TableOptions,
        range_bytes: int,
        columns: Sequence[str] = (),
    ) -> None:
        """
        Start.

        Args:
            paths: Files, folders, patterns.
            table: The table.
            options: Options of dissection.
            range_bytes: Approximate bytes of a file that a task reads.
            columns: The columns of the rows, in order; empty: all.
        """
        self._paths = paths
        self._table = table
        self._choice = options.choice
        made = frozenset(columns)
        if made and self._choice is not None:
            made |= self._choice.columns
        self._options = replace(options, columns=made)
        self._range_bytes = range_bytes
        self._columns = list(columns) or SCHEMAS[table].names

    def partitions(self) -> Sequence[CapturePartition]:
        """
        Read the headers, and return the tasks.

        If they are more than a few, the names of topics and the brokers are read here, once for
        all.
        """
        captures, options = find_captures(self._paths), self._options
        ranges = ranges_of(captures, self._range_bytes, options.decode_as, options.timezone)
        plan = plan_ranges(ranges)
        if self._table in WHOLE:
            return [CapturePartition(plan.ranges, plan.crossing, ALL)]
        asked = [each for each in plan.ranges if self._may_have_rows(each, plan)]
        tasks = [CapturePartition([each], plan.crossing) for each in asked]
        parts = enumerate(_parts_of(plan, [each.number for each in asked]), len(plan.ranges))
        tasks += [CapturePartition(of_part, keys, part) for part, (keys, of_part) in parts]
        if not tasks:
            return [NO_ROWS]  # Spark takes a list without any as one that is not known
        if len(tasks) <= FEW:
            return [replace(each, collection=plan.ranges) for each in tasks]
        facts = collection_facts(plan.ranges, options)
        return [replace(each, facts=facts) for each in tasks]

    def _may_have_rows(self, byte_range: Range, plan: Plan) -> bool:
        """Return whether packets of a range have a time that rows are asked for."""
        if self._choice is None or not self._choice.has_times or len(plan.ranges) == 1:
            return True  # a single range is not read before its task
        times = plan.times.get(byte_range.number)
        return times is not None and self._choice.may_have(*times)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows of one task.

        Raises:
            PipelineError: This worker can't read a file that the driver has read.
        """
        assert isinstance(partition, CapturePartition)
        begin_task()
        facts = partition.facts
        for table, batch in partition.batches(self._options):
            if table == UNREAD and not partition.ranges[0].problem:
                raise PipelineError(batch.column("reason")[0].as_py())
            if facts is None and _needs_facts(table, batch):
                facts = collection_facts(partition.collection, self._options)
            if table == self._table:
                yield self._finished(batch, facts or {})

    def _finished(self, batch: pa.RecordBatch, facts: Mapping[str, str]) -> pa.RecordBatch:
        """Fill in names; connections stay numbered by their first packets."""
        secrets, values = self._options.show_secrets, self._options.values
        finish = RowFinisher(None, facts, secrets, values=values)
        rows = finish(self._table, batch)
        if self._choice is not None:
            rows = self._choice.rows(rows)
        return rows.select(self._columns)


def _parts_of(plan: Plan, asked: Sequence[int]) -> Iterator[tuple[Int64s, list[Range]]]:
    """
    Yield the connections of each part, by their keys, and the ranges that have them.

    Args:
        plan: The ranges, and the connections in several of them.
        asked: Numbers of ranges: only connections with packets in one of these are needed.
    """
    numbers, keys, sizes = (
        plan.index.column(name).to_numpy() for name in ("range", "key", "bytes")
    )
    crossing = unique(keys[np.isin(numbers, asked)])
    count = min(PARTS, 1 + int(sizes[np.isin(keys, crossing)].sum()) // PART_BYTES)
    parts = parts_of(crossing, count)
    for part in unique(parts).tolist():
        chosen = crossing[parts == part]
        of_part = unique(numbers[np.isin(keys, chosen)]).tolist()
        yield chosen, [plan.ranges[number] for number in of_part]


def _needs_facts(table: str, batch: pa.RecordBatch) -> bool:
    """Return whether rows of a task depend on what it has not read yet."""
    return has_doubts(batch) if table == FACTS else has_unnamed_topics(table, batch)


def has_unnamed_topics(table: str, batch: pa.RecordBatch) -> bool:
    """Return whether rows have topics known by id only."""
    names = batch.schema.names
    if table == "records" and "topic" in names:
        unnamed = pc.and_(pc.is_null(batch.column("topic")), pc.is_valid(batch.column("topic_id")))
        return bool(pc.any(unnamed).as_py())
    if "topics" not in names:
        return False
    return bool(pc.any(pc.starts_with(pc.list_flatten(batch.column("topics")), ID_MARK)).as_py())
