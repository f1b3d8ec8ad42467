"""
Builds the tables of a part of a collection, in batches, as the engine reads it.

Connections are numbered by their first packets, and topic ids without a known name stay as marked
ids: `finalize` replaces both when all parts are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dissector.capture.columns import Int64s
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.facts.given_names import given_names
from dissector.engine.fields.field_reader import FieldReader
from dissector.engine.reading.capture import Capture, Options, Reading, Window
from dissector.engine.reading.connection_rows import connection_rows
from dissector.engine.tables.column_types import Coded, Columns
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.polars_tables import (
    exchange_schema,
    frame,
    part_frames,
    record_schema,
    value_schema,
)
from dissector.polars_extra import polars as pl
from dissector.protocol.context import current, iterate_under
from dissector.protocol.definitions.schemas import Schemas
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.query.hidden_rows import iterate_hidden
from dissector.request_log.log_times import used_timezone
from dissector.tls.key_log import KeyLog
from dissector.values.value_settings import ValueSettings
from dissector.view.tables.secret_cells import SecretCells
from pipeline.storage.parquet_store import FILE_BYTES, FOLDERS
from pipeline.tables.coded_rows import coded_rows
from pipeline.tables.message_table import message_frame
from pipeline.tables.problem_rows import file_problems, limit_problems, message_problems
from pipeline.tables.row_choice import RowChoice
from pipeline.tables.shared_facts import DeferredNames, broker_facts
from pipeline.tables.table_schemas import SCHEMAS, with_needed

if TYPE_CHECKING:
    from pipeline.split.segment_sources import CollectionSource, RangeSource, ShardSource

__all__ = ["FACTS", "SCHEMAS", "Batch", "TableBuilder", "TableOptions"]

FACTS = "names"
"""The table of facts for other parts, in addition to `SCHEMAS`."""

LAG_INTERVAL_S = 60.0

Batch = tuple[str, pa.RecordBatch]
"""The name of a table, and rows of it."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """
    Tables to make of a collection, and options of dissection.

    Attributes:
        tables: Names of tables.
        fields: Paths of the fields in the table `fields`; empty: all.
        ports: As in `Options`.
        max_frame_bytes: As in `Options`.
        window_bytes: As in `Options`.
        show_secrets: Leave passwords, tokens and salts unmasked.
        keylogs: Names of TLS key logs, read by each task.
        schemas: Message definitions over the built-in declarations; they are pickled with the
            tasks.
        decode_as: As in `Options`.
        timezone: As in `Options`.
        values: How keys and values of records are decoded, and what is hidden; None: they are not.
        topic_names: As in `Options`.
        file_bytes: Size from which on a task begins another file of a table.
        folders: The folders of each table; see `FOLDERS`.
        columns: Columns that rows of `exchanges` and `records` need, at least; empty: all.
        choice: Rows to make, at least, of the only table; None: all. Facts for other parts are then
            not complete.
        lag_interval_s: Interval of the rows of lag, in seconds.
        thresholds: Those of advice among the findings that the settings change.
    """

    tables: frozenset[str] = frozenset(("connections", "exchanges", "problems"))
    fields: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()
    max_frame_bytes: int = MAX_FRAME_BYTES
    window_bytes: int = WINDOW_BYTES
    show_secrets: bool = False
    keylogs: tuple[str, ...] = ()
    schemas: Schemas | None = field(default_factory=current)
    decode_as: tuple[str, ...] = ()
    timezone: str = field(default_factory=used_timezone)
    values: ValueSettings | None = None
    topic_names: Mapping[UUID, str] = field(default_factory=given_names)
    file_bytes: int = FILE_BYTES
    folders: tuple[str, ...] = FOLDERS
    columns: frozenset[str] = frozenset()
    choice: RowChoice | None = None
    lag_interval_s: float = LAG_INTERVAL_S
    thresholds: Mapping[str, Mapping[str, float]] | None = None

    def kinds_of(self, table: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of a table to make, of all of them with their types."""
        if not self.columns or self.tables != {table} or self.values is not None:
            return schema
        made = with_needed(self.columns)
        return {name: kind for name, kind in schema.items() if name in made}

    @property
    def reading(self) -> Options:
        """How captures are read."""
        return Options(
            self.ports,
            self.max_frame_bytes,
            self.window_bytes,
            schemas=self.schemas,
            keylogs=self.keylogs,
            decode_as=self.decode_as,
            timezone=self.timezone,
            topic_names=self.topic_names,
            keep_copies=True,  # the copies of a connection may be in another part
        )


def found_keylogs(names: Iterable[str]) -> tuple[str, ...]:
    """
    Return absolute paths of key logs; tasks read them, so that Spark never transports secrets.

    Raises:
        CaptureError: One can't be read.
    """
    paths = tuple(str(Path(name).absolute()) for name in names)
    KeyLog(paths)
    return paths


class TableBuilder:
    """
    Makes the tables of one part.

    Attributes:
        reading: The reading of the part.
    """

    def __init__(
        self, source: RangeSource | CollectionSource | ShardSource, options: TableOptions
    ) -> None:
        self._source = source
        self._options = options
        self._capture = Capture([], options.reading)
        self._names = DeferredNames()
        self._names.learn(options.topic_names)
        self._capture.names = self._names
        self.reading = self._capture.reading = Reading([], options.reading, source=source)
        self.reading.correlator.is_shard = True
        self._fields = FieldReader(self._capture, options.show_secrets)
        self._packet = 0
        self._published: tuple[Any, ...] = (frozenset(), {})
        self._reported_hits = self._limit_hits

    @property
    def _limit_hits(self) -> tuple[int, int, int]:
        """Number of hits of limits over all connections."""
        reading = self.reading
        return reading.streams.forced_gaps, reading.correlator.early_decisions, self._source.evicted

    @property
    def state(self) -> tuple[Any, ...]:
        """The state between two windows."""
        names = self._names.by_id, self._names.published
        facts = self._packet, self._published
        reading = self.reading
        return reading.streams, reading.decryption, reading.correlator, *names, *facts

    @state.setter
    def state(self, state: tuple[Any, ...]) -> None:
        streams, decryption, correlator, *rest = state
        self.reading.resume(streams, decryption, correlator)
        self._names.by_id, self._names.published, self._packet, self._published = rest
        self._reported_hits = self._limit_hits

    def rows_of(self, window: Window) -> Iterator[Batch]:
        """
        Yield the tables of a window; its bytes must still be in memory.

        Facts about brokers precede the rows that depend on them.
        """
        rows = iterate_hidden(self._options.values, self._of(window))
        return iterate_under(self._options.schemas, rows)

    def _of(self, window: Window) -> Iterator[Batch]:
        correlator = self.reading.correlator
        if self._published != (correlator.brokers, correlator.doubtful_sides):
            self._published = correlator.brokers, correlator.doubtful_sides
            for facts in broker_facts(self.reading):
                yield FACTS, facts
        if self._options.choice is not None:
            chosen = self._options.choice.exchanges(window.exchanges)
            window = replace(window, exchanges=chosen, summary=None)
        cells = SecretCells(lambda: self._capture.logins, self._options.show_secrets)
        view = _WindowView(self._capture, window, cells, self._options)
        tables = self._options.tables
        if "exchanges" in tables and len(window.exchanges):
            yield "exchanges", self._numbered(view.exchange_rows)
        makers: dict[str, Callable[[_WindowView], pl.DataFrame]] = {
            "messages": self._messages,
            "problems": self._problems,
        }
        for name, make in makers.items():
            if name in tables and len(window.exchanges):
                yield from self._batches(name, make(view))
        if "fields" in tables:
            for part in self._field_frames(view):
                yield from self._batches("fields", part)
        if "records" in tables:
            for part in view.record_frames():
                yield from self._batches("records", part)
        if "problems" in tables:
            yield from self._batches("problems", file_problems(window.problems))
            before, self._reported_hits = self._reported_hits, self._limit_hits
            yield from self._batches("problems", limit_problems(before, self._reported_hits))
        self._packet = max(self._packet, int(window.exchanges.response.packet.max(initial=0)))
        for names in self._names.new_names(self._packet):
            yield FACTS, names

    def connections(self, numbers: Int64s | None = None) -> Iterator[Batch]:
        """Yield all connections, or a selection; they must be complete."""
        if "connections" in self._options.tables:
            selected = None if numbers is None else numbers.tolist()
            rows = list(connection_rows(self.reading, selected))
            table = pa.Table.from_pylist(rows, schema=SCHEMAS["connections"])
            if rows:
                number = table.schema.get_field_index("connection")
                first_packets = pa.array(self._first_packets(table.column(number).to_numpy()))
                table = table.set_column(number, "connection", first_packets)
            for batch in table.to_batches():
                yield "connections", batch

    def _messages(self, view: _WindowView) -> pl.DataFrame:
        return message_frame(self.reading, view.window.exchanges, view.exchanges)

    def _field_frames(self, view: _WindowView) -> Iterator[pl.DataFrame]:
        for part in self._fields.frames(view.window.exchanges):
            if self._options.fields:
                part = part.filter(pl.col("path").cast(pl.String).is_in(list(self._options.fields)))
            yield part

    def _problems(self, view: _WindowView) -> pl.DataFrame:
        return message_problems(self.reading, view.window.exchanges, view.has_problems)

    def _first_packets(self, numbers: Any) -> Int64s:
        return self.reading.streams.connections.first_packets(numbers)

    def _batches(self, name: str, table: pl.DataFrame) -> Iterator[Batch]:
        """Yield a table as Arrow batches, with connections numbered by their first packets."""
        if not len(table):
            return
        schema = pa.schema([SCHEMAS[name].field(column) for column in table.columns])
        for batch in table.to_arrow().cast(schema).to_batches():
            yield name, self._numbered(batch)

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with connections numbered by their first packets."""
        at = batch.schema.get_field_index("connection")
        numbers = batch.column(at)
        if numbers.null_count == len(numbers):
            return batch
        first_packets = self._first_packets(np.asarray(numbers.fill_null(0)))
        is_null = np.asarray(numbers.is_null())
        return batch.set_column(at, batch.schema.field(at), pa.array(first_packets, mask=is_null))


class _WindowView:
    """A window, with data shared by several tables."""

    def __init__(
        self, capture: Capture, window: Window, cells: SecretCells, options: TableOptions
    ) -> None:
        self.window = window
        self._options = options
        self._cells = cells
        self._capture = capture

    @cached_property
    def _columns(self) -> Columns:
        """The columns of `pairs`, a row per exchange; the window must not be empty."""
        columns = self._capture.columns_of(self.window)
        assert columns is not None
        return self._cells.columns(columns)

    @property
    def exchange_rows(self) -> pa.RecordBatch:
        """The rows of exchanges; captures lack what a broker says in its request log."""
        kinds = self._options.kinds_of("exchanges", exchange_schema(logs=True))
        schema = pa.schema([SCHEMAS["exchanges"].field(name) for name in kinds])
        return coded_rows(self._columns, schema, kinds)

    @cached_property
    def exchanges(self) -> pl.DataFrame:
        """The columns of `pairs` that messages have."""
        return frame(self._columns, exchange_schema())

    @property
    def has_problems(self) -> NDArray[np.bool_]:
        """Whether an exchange has problems."""
        problems = self._columns["problems"]
        assert isinstance(problems, Coded)
        are_some = np.array([*map(bool, problems.values), False])
        return are_some[np.where(problems.codes == NONE, -1, problems.codes)]

    def record_frames(self) -> Iterator[pl.DataFrame]:
        """Yield the records."""
        parts = self._capture.record_parts(self.window, lambda topic: False, record_rows)
        kinds = self._options.kinds_of("records", record_schema())
        frames = part_frames(self._cells.parts(parts), kinds)
        # They are filled in when the names of all topics are known.
        decoded = self._options.kinds_of("records", value_schema())
        undecoded = [pl.lit(None, pl.String).alias(name) for name in decoded]
        return (each.with_columns(undecoded) for each in frames)
