"""The captures of a command as its options describe them: filtered, with progress and problems."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from dissector.capture.columns import NEVER
from dissector.capture.packets.decode_as import tunnel_ports
from dissector.cli import interrupt
from dissector.cli.declared.reading_options import ReadingOptions
from dissector.cli.live_input import LiveInput, is_pipe, require_captures
from dissector.cli.progress import Progress
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.fact_columns import Asked
from dissector.engine.reading.capture import Capture, Options, Window
from dissector.engine.reading.notices import reading_notices, unnamed_topics
from dissector.engine.reading.prefetch import cores
from dissector.engine.tables.column_types import Columns, Row
from dissector.engine.tables.exchange_table import Exchanges, Ints
from dissector.errors import Problem
from dissector.query.selection import Selection
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from dissector.engine.fields.field_frame import FieldTable
    from dissector.filter import Filter
    from dissector.query.contents.decoded_values import RecordValues


@dataclass(eq=False, repr=False)
class Source:
    """
    The captures of a command, filtered.

    Attributes:
        capture: The capture.
        filter: Selects the exchanges.
        problems: Number of problems of the files that were reported.
        low_watermark: The first packet of messages that may follow in later windows.
        record_filter: Selects records of these exchanges.
        explains_no_kafka: Whether to report on stderr that the capture has no Kafka, for commands
            that would print nothing else.
        reports_unreadable: Whether the command itself reports that all is encrypted.
        needs_exchanges: Whether records are read one by one, each with its exchange.
        after_window: Called after each window, and repeatedly while a pipe is idle.
        values: Decodes keys and values of records, if anything asks for them.
        observers: Receive each window before its exchanges are filtered.
    """

    capture: Capture
    filter: Filter | None = None
    problems: int = 0
    low_watermark: int = 0
    record_filter: Filter | None = None
    explains_no_kafka: bool = False
    reports_unreadable: bool = False
    needs_exchanges: bool = False
    values: RecordValues | None = None
    after_window: Callable[[], None] = lambda: None
    observers: list[Callable[[Window], None]] = field(default_factory=list)
    _in_flight: Exchanges | None = None

    @cached_property
    def is_live(self) -> bool:
        """Whether a capture comes from a pipe, so that output must not be delayed."""
        options = self.capture.options
        return options.stop.ends_writer or any(map(is_pipe, self.capture.paths))

    @property
    def parallel_parts(self) -> int:
        """Number of parts formatted in parallel; 1 for pipes, so that output is not delayed."""
        return 1 if self.is_live or "-" in self.capture.paths else self.capture.options.jobs

    @property
    def begin_ns(self) -> int:
        """Time of the first packet of the capture."""
        return 0 if self.capture.reading is None else self.capture.reading.source.begin_ns

    def without_secrets(self, parts: Iterable[Columns], show_secrets: bool) -> Iterator[Columns]:
        """Yield rows without secrets in their texts, unless these are to be shown."""
        from dissector.view.tables.secret_cells import SecretCells

        return SecretCells(lambda: self.capture.logins, show_secrets).parts(parts)

    @property
    def places(self) -> Callable[[Ints], list[str]] | None:
        """Returns the files of packets, with their numbers there; None for one file."""
        reading = self.capture.reading
        if reading is None or len(self.capture.paths) < 2:
            return None
        return reading.source.places_of

    def places_text(self, packets: Iterable[int]) -> str:
        """Return the files of packets, with their numbers there; empty for one file."""
        reading = self.capture.reading
        return "" if reading is None else reading.source.places_text(packets)

    def in_flight(self) -> Iterator[Exchange] | None:
        """
        Return the unanswered requests of a live capture.

        None if the capture is not read from a pipe.
        """
        reading, table = self.capture.reading, self._in_flight
        if table is None or reading is None:
            return None
        names = self.capture.names
        return (reading.exchange(table, row, names) for row in range(len(table)))

    @cached_property
    def selection(self) -> Selection:
        """The filters, applied to the windows of the capture."""
        return Selection(self.capture, self.filter, self.record_filter, self.values)

    def record_values(self) -> RecordValues:
        """Return what decodes keys and values; it learns the schemas of the capture's windows."""
        if self.values is None:
            from dissector.query.contents.decoded_values import RecordValues

            self.values = RecordValues(self.capture, self.capture.options.values)
            self.observers.append(self.values.learn)
        return self.values

    def passes(self, exchange: Exchange) -> bool:
        """Return whether an exchange passes the filter."""
        return self.selection.passes(exchange)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the exchanges that pass."""
        return chain.from_iterable(self.passing())

    def passing(self) -> Iterator[Iterator[Exchange]]:
        """Yield the exchanges that pass, window by window."""
        return map(self.selection.exchanges, self.each_window(gleaning=True))

    def parts(self, asked: Asked = None) -> Iterator[Columns]:
        """Yield the rows of `pairs` that pass, with the asked columns or more, by window."""
        return self.selection.parts(self._windows_with(asked), asked)

    def tables(
        self, asked: Asked = None
    ) -> Iterator[tuple[Exchanges, Columns] | Iterator[Exchange]]:
        """Yield the exchanges that pass, by window: with the asked columns, or as objects."""
        return map(partial(self.selection.table, asked=asked), self._windows_with(asked))

    def _windows_with(self, asked: Asked) -> Iterator[Window]:
        """Yield the windows with what is read of bodies for the asked columns, and the filter."""
        return self.each_window(**self.selection.stages(asked)._asdict())

    def record_parts(
        self, is_apart: Callable[[str], bool], rows: Callable[[Exchange], Iterable[Row]]
    ) -> Iterator[Columns]:
        """Yield the records that pass, in the order of packets; see `Capture.record_parts`."""
        return self.capture.records_in_order(
            self.each_window(gleaning=self.filter is not None),
            lambda window: self.selection.record_parts(
                window, is_apart, rows, as_objects=self.needs_exchanges
            ),
        )

    def field_tables(self, show_secrets: bool) -> Iterator[FieldTable]:
        """Yield the fields of all messages."""
        from dissector.engine.fields.field_reader import FieldReader

        fields = FieldReader(self.capture, show_secrets)
        for window in self.each_window(gleaning=self.filter is not None):
            yield from fields.tables(self.selection.exchange_table(window))
            del window  # frees its memory before the next window is read

    def windows(self) -> Iterator[Iterator[Exchange]]:
        """
        Yield all exchanges, by window; problems of the files are reported on stderr as they occur.

        For pipes and terminals stdout is flushed before the next window is read.
        """
        return map(self.capture.exchanges_of, self.each_window(gleaning=True))

    def each_window(self, *, gleaning: bool = False, checking: bool = True) -> Iterator[Window]:
        """
        Yield the windows of the capture; show the progress and report problems of its files.

        Args:
            gleaning: Whether the facts of all exchanges will be needed.
            checking: Whether problems of their records will be; a filter may name them.
        """
        checking = checking or Selection(self.capture, self.filter).stages(frozenset()).checking
        with Progress(self.capture) as progress:
            for window in self.capture.windows(gleaning=gleaning, checking=checking):
                progress.clear()
                for name, problem in window.problems:
                    self._report_problem(name, problem)
                for observe in self.observers:
                    observe(window)
                self._in_flight = window.in_flight
                # Live captures are printed without delay.
                self.low_watermark = window.low_watermark if window.in_flight is None else NEVER
                yield window
                del window  # frees its memory before the next window is read
                self.after_window()
                if self.is_live or "-" in self.capture.paths or sys.stdout.isatty():
                    sys.stdout.flush()
                progress.show()
        reading = self.capture.reading
        if reading is None or self.capture.options.stop.is_requested:
            return
        hooks = self.capture.options.hook_columns
        failures = () if hooks is None else hooks.notices
        for notice in (*reading_notices(reading), *self.capture.notices, *failures):
            print("kafkashark:", escaped(notice), file=sys.stderr)
        unnamed = len(self.capture.names.unnamed - self.capture.names.by_id.keys())
        if unnamed and shows_hints():
            print("kafkashark:", unnamed_topics(unnamed), file=sys.stderr)
        has_kafka = reading.correlator.spoken()["kafka"] > 0
        if not has_kafka and (len(reading.decryption) or self.explains_no_kafka):
            from dissector.engine.reading.tls_report import unreadable_tls, without_kafka

            explanation = "" if self.reports_unreadable else unreadable_tls(reading)
            if not explanation and self.explains_no_kafka:
                explanation = without_kafka(reading)
            if explanation:
                print(f"kafkashark: {explanation}", file=sys.stderr)

    def _report_problem(self, name: str, problem: Problem) -> None:
        self.problems += 1
        place = "" if problem.position is None else f" at byte {problem.position:,}"
        print("kafkashark:", escaped(f"{name}: {problem.what}{place}"), file=sys.stderr)


def shows_hints() -> bool:
    """Return whether somebody reads what could be done better; scripts have no use for it."""
    return sys.stderr.isatty()


_SMALL_BYTES = 1 << 18
"""Captures that are smaller are read by one thread."""


def source(
    given: ReadingOptions, filter_text: str | None = None, *, records: bool = False
) -> Source:
    """
    Return the captures of a command; `records`: the filter may name columns of records.

    Raises:
        FilterError: The filter does not parse.
        UsageError: There is no capture, or a rule of --decode-as is invalid.
    """
    captures = given.captures
    require_captures(captures)
    live = captures if isinstance(captures, LiveInput) else None
    options = Options(
        ports=frozenset(given.ports),
        max_frame_bytes=given.max_frame_bytes,
        jobs=given.jobs or (1 if live is None and _are_small(captures) else cores()),
        stop=interrupt.new_stop_signal() if live is None else live.stop,
        stdin=None if live is None else live.packets,
        keylogs=given.keylogs,
        decode_as=given.decode_as,
        values=given.value_settings,
    )
    tunnel_ports(options.decode_as)
    capture = Capture(list(captures), options)
    chosen = Selection.of(capture, filter_text, records=records)
    made = Source(capture, chosen.filter, record_filter=chosen.record_filter, values=chosen.values)
    if made.values is not None:
        made.observers.append(made.values.learn)
    return made


def _are_small(captures: Sequence[str]) -> bool:
    """Return whether threads would cost more time than they save."""
    try:
        return sum(Path(name).stat().st_size or _SMALL_BYTES for name in captures) < _SMALL_BYTES
    except OSError:  # also for `-`, and for unreadable files, which are reported elsewhere
        return False
