"""A capture for Python programs: filtered, with packets from other libraries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.fact_columns import Asked
from dissector.engine.reading.capture import Capture as UnfilteredCapture
from dissector.engine.reading.capture import Options, Window
from dissector.engine.tables import polars_tables
from dissector.engine.tables.column_types import Columns
from dissector.query.answers_above import answer_above
from dissector.query.capture_text import capture_html, capture_text
from dissector.query.hidden_rows import iterate_hidden
from dissector.query.packet_spool import NAME, FollowedSpool, PacketSpool
from dissector.query.selection import Selection, check_filter, joined_filters, may_test_problems

if TYPE_CHECKING:
    import polars

    from dissector.query.lazy_frames import TableName
    from dissector.query.packet_export import ExportCounts

AdviceReport: TypeAlias = Any  # kafkashark.AdviceReport
Event: TypeAlias = Any  # timeline.events.event.Event
FindingReport: TypeAlias = Any  # kafkashark.FindingReport

_INHERITED = ("batches", "exchanges", "filter_text", "options", "paths", "reading", "records")


class Capture(UnfilteredCapture):
    """
    One or several files of one capture, or fed packets; made by `open_capture`.

    It is iterable: its exchanges in the order of their ends. Each method reads the capture again,
    except from inputs that can be read once only (standard input, pipes). All of them return only
    matching rows. Times are int nanoseconds since the epoch, latencies float milliseconds, sizes
    bytes; packets are numbered from 1, connections from 0.

    As a context manager it drops the fed packets at the end of the block.

    Attributes:
        paths: The files in order; `-` is standard input.
        filter_text: The display filter; None without one.
        options: How it is read.
        reading: The current pass, or the last one; None before the first.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        options: Options | None = None,
        filter: str | None = None,
    ) -> None:
        options = options or Options()
        self._inputs = dict(options.inputs)
        super().__init__(paths, replace(options, inputs=self._inputs))
        self.filter_text = filter
        self._is_part = False
        self._file_problems = 0

    def __repr__(self) -> str:
        return capture_text(self, self.filter_text)

    def _repr_html_(self) -> str:
        """Return properties known without reading the capture, and the totals of the last pass."""
        return capture_html(self, self.filter_text)

    def __dir__(self) -> list[str]:
        """Return the software of clients and brokers; the rest is for the commands."""
        own = [name for name in vars(Capture) if not name.startswith("_")]
        return sorted({*own, *_INHERITED} - {"parts", "windows"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """
        End `follow`, and delete the packets that were fed; files of the caller stay open.

        Captures made by `filter` leave both to the capture that they are part of.
        """
        if not self._is_part and (spool := self._spool) is not None:
            spool.close()

    def filter(self, text: str) -> Self:
        """
        Return the part of this capture that passes a display filter, besides its own filter.

            produced = capture.filter("api == Produce")
            produced.filter("latency_ms > 100").exchanges()

        Nothing is read until the part is. Both have the same files and fed packets, also those that
        are fed later to either.

        Raises:
            FilterError: The filter does not parse.
        """
        check_filter(text)
        return self._part(text)

    def _part(self, text: str | None) -> Self:
        part = type(self)((), None, joined_filters(self.filter_text, text))
        part.paths, part.options, part._inputs = self.paths, self.options, self._inputs
        part._is_part = True
        part.names = part._new_names()
        return part

    def windows(self, *, gleaning: bool = False, checking: bool = True) -> Iterator[Window]:
        """Read the capture, window by window, as there; the filter may name problems of records."""
        self._file_problems = 0
        checking = checking or may_test_problems(self.filter_text)
        for window in super().windows(gleaning=gleaning, checking=checking):
            self._file_problems += len(window.problems)
            yield window
            del window  # frees its memory before the next window is read

    def __iter__(self) -> Iterator[Exchange]:
        """Read the capture, exchange by exchange, in the order of their ends."""
        chosen = self._selection
        for window in self.windows():
            yield from map(Exchange.for_programs, chosen.exchanges(window))

    def parts(
        self,
        asked: Asked = None,
        observe: Callable[[Window], object] | None = None,
        contents: Collection[str] = (),
    ) -> Iterator[Columns]:
        """Yield rows of `pairs` that pass: asked columns, contents; `observe` gets all windows."""
        # One without a filter is not kept: it would hold the capture, and its memory.
        chosen = Selection(self) if self.filter_text is None else self._selection
        windows = self.windows(**chosen.stages(asked)._asdict())
        if observe is not None:
            windows = _observed(windows, observe)
        if contents:
            from dissector.query.exchange_contents import selected_contents

            return selected_contents(self, windows, chosen, contents)
        return chosen.parts(windows, asked)

    def record_batches(self, columns: Collection[str] | None = None) -> Iterator[polars.DataFrame]:
        """Yield the records that pass, or these columns, as tables of some ten thousand rows."""
        chosen, schema = self._record_selection, polars_tables.record_schema()
        if self.options.values is not None:
            from dissector.query.contents.decoded_values import RecordValues

            values = chosen.values or RecordValues(self, self.options.values)
            chosen = replace(chosen, values=values)
            schema = {**schema, **polars_tables.value_schema()}
        parts = self.records_in_order(
            self.windows(gleaning=self.filter_text is not None),
            lambda window: chosen.record_parts(window, lambda topic: False, chosen.records),
        )
        if self.options.values is not None:
            parts = values.parts(parts)
        if columns is not None:
            schema = {name: kind for name, kind in schema.items() if name in columns}
        return polars_tables.part_frames(iterate_hidden(self.options.values, parts), schema)

    def fields(self, *, show_secrets: bool = False) -> polars.DataFrame:
        """
        Return every field of every message as a row, as `dissect -T parquet` does.

        A capture of 1 MB has some 100,000 rows; `field_batches` has them in parts.

        Args:
            show_secrets: Whether passwords, tokens and the like are shown, not masked as `***`.
        """
        from dissector.engine.fields.field_frame import field_schema
        from dissector.polars_extra import polars

        frames = self.field_batches(show_secrets=show_secrets)
        return polars.concat([polars.DataFrame(schema=field_schema()), *frames])

    def field_batches(self, *, show_secrets: bool = False) -> Iterator[polars.DataFrame]:
        """Yield the rows of `fields` in tables of some hundred thousand rows each."""
        from dissector.engine.fields.field_reader import FieldReader

        reader, chosen = FieldReader(self, show_secrets), self._selection
        tables = map(chosen.exchange_table, self.windows(gleaning=self.filter_text is not None))
        frames = (each for table in tables for each in reader.frames(table))
        return iterate_hidden(self.options.values, frames, show_secrets=show_secrets)

    def scan(self, table: TableName = "exchanges") -> polars.LazyFrame:
        """
        Return a table as a lazy frame of polars; each `collect` reads the capture.

            capture.scan("records").filter(pl.col("topic") == "orders").select("offset").collect()

        `table` is the method with the same rows. Only needed columns are made; comparisons with
        texts and numbers also select messages. Errors of reading are polars' `ComputeError`.
        """
        from dissector.query.lazy_frames import scan_table

        return scan_table(table, self._part)

    def streams(self) -> polars.DataFrame:
        """
        Return a row for each TCP connection, with the columns of `streams`.

        With a filter only the connections of exchanges that pass.
        """
        from dissector.engine.reading.connection_rows import connection_rows
        from dissector.engine.tables.polars_tables import connection_schema
        from dissector.polars_extra import polars

        numbers: set[int] | None = None
        if self.filter_text is not None:
            numbers = {exchange.connection for exchange in self}
        else:
            for window in self.windows():
                del window
        assert self.reading is not None
        rows = list(connection_rows(self.reading, None if numbers is None else sorted(numbers)))
        return polars.DataFrame(rows, schema=dict(connection_schema()))

    def stats(self, by: str | Iterable[str] = ()) -> dict[str, polars.DataFrame]:
        """
        Return response times and errors, as `stats` does.

            capture.stats(by=["minute,api", "client"])["minute,api"]

        Args:
            by: Keys of `stats --by`, several with commas; a list has a table for each.

        Returns:
            Tables by name, most exchanges first, with counts, bytes, and percentiles of the latency
            in milliseconds (null without a response): `apis`, `clients`, `topics` and `brokers`, or
            those of `by`; and `capture`, one row with counters of the whole capture, regardless of
            the filter.

        Raises:
            UsageError: A key does not exist, or is given twice.
        """
        from dissector.query.capture_answers import statistics_by, table_of
        from dissector.summary.statistics import health

        statistics = statistics_by(self, self.parts, by, self._selection.filter)
        counters = health(self.reading, self._file_problems + statistics.problems)
        tables = statistics.sections() | {"capture": [counters]}
        return {name: table_of(rows) for name, rows in tables.items()}

    def groups(self, interval: float | None = None) -> dict[str, polars.DataFrame]:
        """
        Return the groups at the end of the capture, as `groups` does.

        Args:
            interval: Seconds: the lag at the end of each such interval instead.

        Returns:
            Tables by name: `groups`, `members` and `partitions` with committed offsets and lag; or
            `lags` and `partition_lags`: a row for each interval in which one of these changed.
        """
        from dissector.query.capture_answers import group_tables

        return group_tables(self, self._selection.filter, interval)

    def upgrade(
        self, to: str = "latest", *, clients: bool = False, internal: bool = False
    ) -> polars.DataFrame:
        """
        Return the API versions in use that a release of Kafka removed or does not know.

        Args:
            to: The release: `4.4`, `v4.4.0` or `latest`.
            clients: The clients are upgraded, not the brokers.
            internal: Judge brokers and controllers as clients of each other too.

        Returns:
            The rows of `upgrade`; none where nothing breaks or must be negotiated.

        Raises:
            UsageError: The release is not known.
        """
        from dissector.query.capture_answers import upgrade_table

        return upgrade_table(self, self.parts, to, clients=clients, internal=internal)

    def export(self, path: str | Path, *, connections: bool = False) -> ExportCounts:
        """
        Write the packets of the exchanges that pass to a pcapng file, as `export -Y` does.

        They give the same exchanges when read again. Contents and secrets stay as they are.

        Args:
            path: The file; an older one is replaced when the new one is complete.
            connections: Write whole connections.

        Returns:
            Numbers of exchanges, connections and packets; see `ExportCounts`.

        Raises:
            UsageError: An input can be read once only, or is the file to write; there are masks.
        """
        from dissector.query.packet_export import export_capture

        return export_capture(self, self.filter_text, path, connections=connections)

    def timeline(self, **options: Any) -> Iterator[Event]:
        """
        Yield what happened, in the order of time: the events of `timeline`, filtered or not.

        Args:
            options: `kinds` and `records`, as of `kafkashark timeline --kind` and `--records`.
        """
        events: Iterator[Event] = answer_above("timeline")(self, **options)
        return events

    def advise(self, **options: Any) -> AdviceReport:
        """
        Return what clients do badly, filtered or not: `kafkashark.advise` of the capture.

        Args:
            options: Those of `kafkashark.advise`: `select`, `ignore`, `limits`, `fail_on`.
        """
        return answer_above("advise")(self, **options)

    def findings(self, **options: Any) -> FindingReport:
        """
        Return what stands out in the capture, the worst first: `kafkashark.findings` of it.

        Args:
            options: Those of `kafkashark.findings`: `select`, `ignore`, `scope`, `fail_on`.
        """
        return answer_above("findings")(self, **options)

    def feed(self, packets: object, *, link: int | None = None) -> None:
        """
        Append packets to those of the files; any thread may do so, also during `follow`.

            capture.feed(rdpcap("a.pcap"))                  # scapy
            AsyncSniffer(iface="lo", prn=capture.feed, store=False).start()
            capture.feed(dpkt.pcap.UniversalReader(file))   # dpkt
            capture.feed([(1700000000.5, packet_bytes)])    # time in seconds, or a datetime

        Args:
            packets: A packet of scapy, a pair (time, bytes), or an iterable of these, in the order
                of their times. Times are seconds since the epoch (int, float, Decimal), or
                datetimes; a float is rounded to microseconds.
            link: The link type (https://www.tcpdump.org/linktypes.html) of all these packets; by
                default the link type of scapy's class or dpkt's reader, and 1, Ethernet, for pairs.

        Raises:
            UsageError: An item is not a packet, or the capture is closed.
        """
        from dissector.query.fed_packets import fed_packets

        self._packets().add(fed_packets(packets, link))
        if self.reading is not None:
            self.names = self._new_names()  # these packets may define more

    def follow(self) -> Iterator[Exchange]:
        """
        Yield the exchanges as they end, including those of packets fed later.

        It ends after `stop` or `close`, with the requests that have no response.
        """
        spool = self._packets()
        options = replace(self.options, inputs={**self.options.inputs, NAME: FollowedSpool(spool)})
        return iter(Capture(self.paths, options, self.filter_text))

    def stop(self) -> None:
        """Declare that no more packets are fed: `follow` ends after the ones already fed."""
        self._packets().stop()

    @property
    def _spool(self) -> PacketSpool | None:
        found = self._inputs.get(NAME)
        return found if isinstance(found, PacketSpool) else None

    def _packets(self) -> PacketSpool:
        spool = self._spool
        if spool is None:
            spool = self._inputs[NAME] = PacketSpool()
            self.paths.append(NAME)
        return spool

    @cached_property
    def _selection(self) -> Selection:
        return Selection.of(self, self.filter_text)

    @cached_property
    def _record_selection(self) -> Selection:
        return Selection.of(self, self.filter_text, records=True)


def _observed(windows: Iterable[Window], observe: Callable[[Window], object]) -> Iterator[Window]:
    for window in windows:
        observe(window)
        yield window
        del window  # frees its memory before the next window is read
