"""
One pass over the files of a capture: the stages in order.

files -> `Packets` -> layers -> `Segments` -> tcp -> `Chunks` -> decryption of TLS -> `Chunks` ->
correlator -> `Exchanges`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import UUID

from dissector.capture.columns import Chunks, Segments
from dissector.capture.formats.byte_source import StopSignal
from dissector.capture.formats.capture_reader import WINDOW_BYTES, is_file, read_tls_secrets
from dissector.capture.formats.inputs import Inputs
from dissector.capture.tcp.reassembly import Streams
from dissector.engine.correlation.correlator import Correlator
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_facts import WindowSummary
from dissector.engine.exchanges.fact_columns import ExchangeSummaries
from dissector.engine.exchanges.log_columns import LogColumns
from dissector.engine.exchanges.packet_columns import PacketColumns
from dissector.engine.exchanges.packet_facts import PacketFacts
from dissector.engine.facts.given_names import given_names
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.connection_copies import ConnectionCopies, are_copies_kept
from dissector.engine.reading.connection_ends import (
    ConnectionEnds,
    ConnectionGaps,
    EndedConnections,
)
from dissector.engine.reading.endpoint_texts import EndpointTexts
from dissector.engine.reading.one_sided import mark_one_sided
from dissector.engine.reading.packet_files import TlsSecrets
from dissector.engine.reading.prefetch import map_all, map_in_threads, prefetch
from dissector.engine.reading.segment_source import FileProblems, FileSource, SegmentSource
from dissector.engine.reading.tls_decryption import TlsDecryption
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.hooks.hook_columns import HookColumns
from dissector.protocol.context import current, iterate_under, using
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.request_log.log_times import used_timezone
from dissector.tls.key_log import KeyLog

if TYPE_CHECKING:
    from dissector.protocol.definitions.schemas import Schemas
    from dissector.values.value_settings import ValueSettings

Tap = Callable[[int, int, bytes | None, int], None]
"""
Called with connection, side, next bytes of that stream (None for a gap), and their number.

A gap of `PLAINTEXT_BEGINS` bytes: earlier chunks were encrypted, later ones are decrypted.
"""

PLAINTEXT_BEGINS = -1

MAX_WORKERS = 2
"""Correlation is sequential, and other work takes less than twice as long: more would wait."""


@dataclass(slots=True)
class Options:
    """
    How captures are read.

    Attributes:
        ports: Only connections on these ports are Kafka; empty: it is recognised by content.
        max_frame_bytes: Larger frames are skipped as a problem.
        window_bytes: Approximate bytes of a file in memory at a time.
        first_window_bytes: The same for the first window, ready before threads read on; or None.
        stdin: Read in place of standard input for `-`.
        inputs: Streams to read in place of files of some names.
        stop: Ends the captures where they are when requested.
        live: Whether windows of a pipe contain the requests in flight.
        jobs: How many windows may be processed in parallel, as far as that helps: each stage of
            reading has a thread or two, if more than one. The result is the same.
        schemas: Message definitions over the built-in declarations: `Schemas.of("trunk.jar")`; by
            default those in use at the creation of the options.
        keylogs: Names of TLS key logs.
        packet_facts: What is kept of packets for filters and details: `lengths`, `comments`.
        hook_columns: Columns of hooks, if any is asked for.
        comments: All comments of some packets, by number from 0, in place of those in the files.
        section_comment: A comment for the sections of an export.
        secrets: TLS key logs that are written into an export.
        decode_as: Tunnels on other UDP ports than their usual ones: `udp.port==10800,vxlan`.
        keep_copies: Whether connections that the capture holds twice count twice.
        forgets: Whether connections are forgotten minutes after their end; their counters stay.
            Only with one job, as a stage behind may still ask for them.
        values: How keys and values of records are decoded; None: by schemas of the capture.
        timezone: Zone of times without one in request logs.
        topic_names: Names of topic ids, besides those in the capture.
    """

    ports: frozenset[int] = frozenset()
    max_frame_bytes: int = MAX_FRAME_BYTES
    window_bytes: int = WINDOW_BYTES
    stdin: BinaryIO | None = None
    jobs: int = 1
    stop: StopSignal = field(default_factory=StopSignal)
    live: bool = False
    schemas: Schemas | None = field(default_factory=current)
    keylogs: tuple[str, ...] = ()
    packet_facts: frozenset[str] = frozenset()
    hook_columns: HookColumns | None = None
    comments: Mapping[int, list[str]] = field(default_factory=dict)
    section_comment: str = ""
    secrets: tuple[bytes, ...] = ()
    inputs: Inputs = field(default_factory=dict)
    first_window_bytes: int | None = None
    decode_as: tuple[str, ...] = ()
    keep_copies: bool = field(default_factory=are_copies_kept)
    forgets: bool = False
    values: ValueSettings | None = None
    timezone: str = field(default_factory=used_timezone)
    topic_names: Mapping[UUID, str] = field(default_factory=given_names)


@dataclass(slots=True)
class Window:
    """
    The result of one window of a capture.

    Attributes:
        exchanges: Those that ended in it.
        low_watermark: The first packet of messages that may follow in later windows.
        records_from: The same of records, as far as a Produce in flight has them.
        problems: Problems of the files: file name and problem.
        summary: The summary of the exchanges, if requested for all windows.
        in_flight: Requests in flight, if requested; their status is WAITING.
        ends: The connections that were closed or reset in it.
        gaps: Bytes that are missing in its streams.
        is_live: Whether it comes from a pipe, which may deliver more at any time.
    """

    exchanges: Exchanges
    low_watermark: int
    records_from: int
    problems: FileProblems = field(default_factory=list)
    summary: WindowSummary | None = None
    in_flight: Exchanges | None = None
    ends: ConnectionEnds = field(default_factory=ConnectionEnds.none)
    gaps: ConnectionGaps = field(default_factory=ConnectionGaps.none)
    is_live: bool = False


class Reading:
    """
    One pass over the files of a capture.

    Attributes:
        source: The source of the segments.
        streams: All TCP connections.
        endpoints: Their endpoints as texts.
        decryption: Decrypts TLS connections.
        correlator: Frames and correlates their bytes.
        lengths: The lengths of packets, if requested; the reader of windows drops old ones.
        keys: The TLS secrets of the key logs, and of the files as far as read.
        copies: Connections that the capture holds twice; None: each counts.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: Options,
        tap: Tap | None = None,
        source: SegmentSource | None = None,
        untapped: Collection[int] = (),
    ) -> None:
        """
        Start to read files, or another source.

        The tap needs no more of the `untapped` connections; it may add to them.

        Raises:
            CaptureError: A key log can't be read.
        """
        self.options = options
        self.keys = KeyLog(options.keylogs, follow=options.live or not all(map(is_file, paths)))
        self.source = source or FileSource(
            paths,
            options.window_bytes,
            options.stdin,
            options.stop,
            options.inputs,
            facts=PacketFacts(options.packet_facts, options.comments),
            first_window_bytes=options.first_window_bytes,
            decode_as=options.decode_as,
            timezone=options.timezone,
        )
        self._tap, self._untapped = tap, untapped
        self._ends, self._gaps = ConnectionEnds.none(), ConnectionGaps.none()
        self.streams = Streams()
        self.endpoints = EndpointTexts(self.streams.connections)
        self.copies = None if options.keep_copies else ConnectionCopies(self.streams.connections)
        self.decryption = TlsDecryption(
            self.streams.connections, options.ports, self.keys, self._secrets_of_files()
        )
        with using(options.schemas):
            self.correlator = Correlator(
                self.streams.connections, options.ports, options.max_frame_bytes
            )
        stages = self.streams, self.correlator, self.decryption, self.copies
        self._ended = EndedConnections(*stages) if options.forgets else None

    @property
    def packets(self) -> int:
        """Packets read so far."""
        return self.source.packets

    @property
    def bytes(self) -> int:
        """Bytes of packets read so far."""
        return self.source.bytes

    def windows(self) -> Iterator[Window]:
        """Read the files; the last windows contain the exchanges that end with the capture."""
        return self.map_windows()

    def map_windows(self, *works: Callable[[Any], Any]) -> Iterator[Any]:
        """
        Yield each window after all `works`, one after the other.

        Reading, correlation and each work are stages that run in parallel.
        """
        return iterate_under(self.options.schemas, self._map_windows(works))

    def _map_windows(self, works: Sequence[Callable[[Any], Any]]) -> Iterator[Any]:
        jobs, segments = self.options.jobs, self.source.windows()
        alone = 0 if self.options.first_window_bytes is None else 1
        if jobs > 2:
            segments = chain(islice(segments, alone), prefetch(segments))
        items: Iterator[Any] = self._all_windows(segments)
        yield from map_all(islice(items, alone), works)
        if jobs <= 1:
            yield from map_all(items, works)
            return
        items = prefetch(items)
        workers = min(jobs - 1, MAX_WORKERS)
        for work in works:
            items = map_in_threads(items, work, workers, workers)
        yield from items

    def _all_windows(self, windows: Iterable[tuple[Segments, FileProblems]]) -> Iterator[Window]:
        yield from self.advance(windows)
        yield from self.finish()

    def advance(self, windows: Iterable[tuple[Segments, FileProblems]]) -> Iterator[Window]:
        """Reassemble the next segments and correlate their frames; more may follow."""
        return iterate_under(self.options.schemas, self._advance(windows))

    def _advance(self, windows: Iterable[tuple[Segments, FileProblems]]) -> Iterator[Window]:
        for segments, problems in windows:
            if self._ended is not None:
                self._ended.forget()
            if self._take_secrets() and len(self.decryption):
                exchanges = self._correlate_plain(self.decryption.try_again())
                if len(exchanges):
                    yield self._window(exchanges)
            exchanges = self._correlate(self.streams.feed(segments))
            window = self._window(exchanges, problems)
            window.is_live = segments.is_live
            if segments.is_live and self.options.live:
                window.in_flight = self.correlator.in_flight()
            del segments, exchanges
            yield window
            del window

    def finish(self) -> Iterator[Window]:
        """Yield the exchanges that end with the capture."""
        return iterate_under(self.options.schemas, self._finish())

    def end_connections(self, numbers: Ints | None = None) -> Iterator[Window]:
        """Yield the exchanges that end with these connections, all but the last may be empty."""
        for chunks in self.streams.finish(numbers):
            yield self._window(self._correlate(chunks))
        if len(self.decryption):
            yield self._window(self._correlate_plain(self.decryption.finish(numbers)))
        ended = self.correlator.finish(numbers)
        yield self._window(mark_one_sided(ended, self.streams.connections))

    def _finish(self) -> Iterator[Window]:
        self.keys.end()
        *windows, last = self.end_connections()
        yield from (each for each in windows if len(each.exchanges) or len(each.gaps))
        yield last

    def resume(self, streams: Streams, decryption: TlsDecryption, correlator: Correlator) -> None:
        """Go on after an earlier part of the capture, with the present keys."""
        decryption.attach(self.keys, self._secrets_of_files())
        self.streams, self.decryption, self.correlator = streams, decryption, correlator
        self.endpoints = EndpointTexts(streams.connections)

    def retain(self, numbers: Ints) -> None:
        """Drop all connections but these; the others must have ended by `end_connections`."""
        self.endpoints.forget()
        self.correlator.retain(numbers)  # it still asks the streams for the present numbers
        self.streams.retain(numbers)
        self.decryption.retain(numbers)

    def low_watermark(self) -> int:
        """Return the first packet of messages that may follow."""
        return min(self.correlator.low_watermark(), self.decryption.low_watermark())

    def _secrets_of_files(self) -> Callable[[], TlsSecrets]:
        """Return what reads the secrets in the files; without a reference to this reading."""
        paths, inputs = self.source.paths, self.options.inputs
        return lambda: list(read_tls_secrets(paths, inputs))

    def _take_secrets(self) -> bool:
        """Add secrets in the files, and in growing key logs; return whether any were added."""
        before = self.keys.generation
        while self.source.tls_secrets:
            self.keys.add(self.source.tls_secrets.pop(0))
        if self.keys.follow:
            self.keys.refresh()
        return self.keys.generation != before

    def _window(self, exchanges: Exchanges, problems: FileProblems | None = None) -> Window:
        ends, self._ends = self._ends, ConnectionEnds.none()
        gaps, self._gaps = self._gaps, ConnectionGaps.none()
        low_watermark, records_from = self.low_watermark(), self.correlator.records_from()
        return Window(exchanges, low_watermark, records_from, problems or [], ends=ends, gaps=gaps)

    def files_of(self, packets: Ints) -> Coded:
        """Return the names of the files that hold packets."""
        return self.source.files_of(packets)

    def client_and_broker(self, connection: int, client: int) -> tuple[str, str]:
        """Return client and broker of a connection as `address:port`."""
        both = self.endpoints.of(connection)
        return both[client], both[1 - client]

    def origins_of(self, connections: Ints) -> list[str | None]:
        """Return the client before a proxy of connections, as their first bytes name it."""
        return self.correlator.origins(connections.tolist())

    def exchange(
        self,
        table: Exchanges,
        row: int,
        names: TopicNames,
        summaries: ExchangeSummaries | None = None,
    ) -> Exchange:
        """Return one row of a window as an object."""
        client, broker = self.client_and_broker(int(table.connection[row]), int(table.client[row]))
        packet = int(table.request.packet[row])
        if packet == NONE:
            packet = int(table.response.packet[row])
        with using(self.options.schemas):
            return Exchange(
                table,
                row,
                capture=self.source.file_of(packet),
                client=client,
                broker=broker,
                origin=self.correlator.origins([int(table.connection[row])])[0],
                names=names,
                summaries=summaries,
                packets=self.packet_columns(),
                hooks=self.options.hook_columns,
            )

    def packet_columns(self) -> PacketColumns:
        """Return the columns of packets that filters read."""
        return PacketColumns(self.source.begin_ns, self.source.facts, self.logs)

    @property
    def logs(self) -> LogColumns:
        """The request logs among the files."""
        return self.source.logs

    def _correlate(self, chunks: Chunks) -> Exchanges:
        """Decrypt and correlate chunks, without those of copies."""
        if self._ended is not None:
            self._ended.add(chunks)
        if self.copies is not None:
            chunks = self.copies.without(chunks)
        self._ends = self._ends.and_then(ConnectionEnds.of(chunks, self.streams.connections))
        self._gaps = self._gaps.and_then(ConnectionGaps.of(chunks))
        return self._correlate_plain(self.decryption.feed(chunks))

    def _correlate_plain(self, chunks: Chunks) -> Exchanges:
        """Correlate decrypted chunks, after passing them to the tap."""
        begun = self.decryption.begun
        if begun:
            self.correlator.restart(begun)
        if self._tap is not None:
            for number in begun:
                self._tap(number, 0, None, PLAINTEXT_BEGINS)
            for piece in chunks.pieces(self._untapped):
                self._tap(*piece)
        return mark_one_sided(self.correlator.feed(chunks), self.streams.connections)
