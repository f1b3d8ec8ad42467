"""
The tables of a part of a collection, in batches, as the engine reads it.

Connections have the numbers of their first packets in the place of their own, and names of topics
that were not told in this part stand as marked ids: `finish` puts both right, when all parts are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.engine.correlation.framer import MAX_FRAME_BYTES
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.fields.field_reader import FieldReader
from dissector.engine.reading.capture import Capture, Options, Reading, Window
from dissector.engine.reading.connection_rows import connection_rows
from dissector.engine.tables.frames import exchange_schema, frame, part_frames, record_schema
from dissector.protocol.context import current, iterate_under
from dissector.protocol.definitions.schemas import Schemas
from pipeline.tables.message_table import message_frame
from pipeline.tables.problem_rows import file_problems, limit_problems, message_problems
from pipeline.tables.shared_facts import DeferredNames, broker_facts
from pipeline.tables.table_schemas import SCHEMAS

if TYPE_CHECKING:
    from pipeline.split.segment_sources import RangeSource, ShardSource

__all__ = ["FACTS", "SCHEMAS", "Batch", "TableBuilder", "Wanted"]

FACTS = "names"
"""The table of what other parts must know, beside those of `SCHEMAS`."""

Batch = tuple[str, pa.RecordBatch]
"""Rows of a table, and its name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    What is wanted of a collection.

    Attributes:
        tables: Names of tables.
        fields: Only fields with these paths are wanted; empty: all.
        ports: As in `Options`.
        max_frame_bytes: As in `Options`.
        window_bytes: As in `Options`.
        show_secrets: Leave passwords, tokens and salts as they are.
        schemas: Message definitions over the built-in declarations; tasks take them with them.
    """

    tables: frozenset[str] = frozenset(("connections", "exchanges", "problems"))
    fields: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()
    max_frame_bytes: int = MAX_FRAME_BYTES
    window_bytes: int = WINDOW_BYTES
    show_secrets: bool = False
    schemas: Schemas | None = field(default_factory=current)

    @property
    def options(self) -> Options:
        """How captures are read."""
        return Options(self.ports, self.max_frame_bytes, self.window_bytes, schemas=self.schemas)


class TableBuilder:
    """
    Makes the tables of one part.

    Attributes:
        reading: Reads it.
    """

    def __init__(self, feed: RangeSource | ShardSource, wanted: Wanted) -> None:
        self._feed = feed
        self._wanted = wanted
        self._capture = Capture([], wanted.options)
        self._names = DeferredNames()
        self._capture.names = self._names
        self.reading = self._capture.reading = Reading([], wanted.options, source=feed)
        self.reading.correlator.is_shard = True
        self._fields = FieldReader(self._capture, wanted.show_secrets)
        self._packet = 0
        self._told: tuple[Any, ...] = (frozenset(), {})
        self._hit = self._crowded

    @property
    def _crowded(self) -> tuple[int, int, int]:
        """How often limits were hit that count over all connections."""
        reading = self.reading
        return reading.streams.forced_gaps, reading.correlator.early_decisions, self._feed.crowded

    @property
    def state(self) -> tuple[Any, ...]:
        """What is kept from window to window."""
        reading, told = self.reading, self._names.published
        kept = self._names.by_id, told, self._packet, self._told
        return reading.streams, reading.correlator, *kept

    @state.setter
    def state(self, state: tuple[Any, ...]) -> None:
        self.reading.streams, self.reading.correlator, *kept = state
        self._names.by_id, self._names.published, self._packet, self._told = kept
        self._hit = self._crowded

    def rows_of(self, window: Window) -> Iterator[Batch]:
        """
        Yield the tables of a window, whose bytes must still be there.

        Who is in doubt, and who is a broker, is told before the rows that depend on it.
        """
        return iterate_under(self._wanted.schemas, self._of(window))

    def _of(self, window: Window) -> Iterator[Batch]:
        talks = self.reading.correlator
        if self._told != (talks.brokers, talks.doubtful_sides):
            self._told = talks.brokers, talks.doubtful_sides
            for told in broker_facts(self.reading):
                yield FACTS, told
        view = _View(self._capture, window)
        tables = self._wanted.tables
        makers: dict[str, Callable[[_View], pl.DataFrame]] = {
            "exchanges": lambda view: view.exchanges,
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
            before, self._hit = self._hit, self._crowded
            yield from self._batches("problems", limit_problems(before, self._hit))
        self._packet = max(self._packet, int(window.exchanges.response.packet.max(initial=0)))
        for names in self._names.new_names(self._packet):
            yield FACTS, names

    def connections(self, numbers: Int64s | None = None) -> Iterator[Batch]:
        """Yield the connections, or these of them, of which all was read."""
        if "connections" in self._wanted.tables:
            chosen = None if numbers is None else numbers.tolist()
            rows = list(connection_rows(self.reading, chosen))
            table = pa.Table.from_pylist(rows, schema=SCHEMAS["connections"])
            if rows:
                number = table.schema.get_field_index("connection")
                firsts = pa.array(self._first_packets(table.column(number).to_numpy()))
                table = table.set_column(number, "connection", firsts)
            for batch in table.to_batches():
                yield "connections", batch

    def _messages(self, view: _View) -> pl.DataFrame:
        return message_frame(self.reading, view.window.exchanges, view.exchanges)

    def _field_frames(self, view: _View) -> Iterator[pl.DataFrame]:
        for part in self._fields.frames(view.window.exchanges):
            if self._wanted.fields:
                part = part.filter(pl.col("path").cast(pl.String).is_in(list(self._wanted.fields)))
            yield part

    def _problems(self, view: _View) -> pl.DataFrame:
        return message_problems(self.reading, view.window.exchanges, view.exchanges)

    def _first_packets(self, numbers: Any) -> Int64s:
        return self.reading.streams.connections.first_packets(numbers)

    def _batches(self, name: str, table: pl.DataFrame) -> Iterator[Batch]:
        """Yield a table as Arrow has it, with the first packets of connections."""
        if not len(table):
            return
        numbers = table["connection"]
        known = numbers.fill_null(0).to_numpy()
        if numbers.null_count() < len(numbers):
            firsts = pl.Series("connection", self._first_packets(known))
            firsts = firsts.zip_with(numbers.is_not_null(), pl.Series([None], dtype=pl.Int64))
            table = table.with_columns(firsts)
        for batch in table.to_arrow().cast(SCHEMAS[name]).to_batches():
            yield name, batch


class _View:
    """A window, and what more than one table needs of it."""

    def __init__(self, capture: Capture, window: Window) -> None:
        self.window = window
        self._capture = capture

    @cached_property
    def exchanges(self) -> pl.DataFrame:
        """The columns of `pairs`, a row for each exchange of the window, which has some."""
        columns = self._capture.columns_of(self.window)
        assert columns is not None
        return frame(columns, exchange_schema())

    def record_frames(self) -> Iterator[pl.DataFrame]:
        """Yield the records."""
        parts = self._capture.record_parts(self.window, lambda topic: False, record_rows)
        return part_frames(parts, record_schema())
