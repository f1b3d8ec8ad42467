"""
One pass over the files of a capture: the stages in their order.

files -> `Packets` -> layers -> `Segments` -> tcp -> `Chunks` -> conversations -> `Exchanges`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from dissector.capture.addresses import endpoint_text
from dissector.capture.columns import DATA, GAP, Chunks, Segments
from dissector.capture.formats.byte_source import Stop
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.capture.tcp.reassembly import Streams
from dissector.engine.correlation.connection_dispatcher import Conversations
from dissector.engine.correlation.exchange_rows import columns
from dissector.engine.correlation.framer import MAX_FRAME_BYTES
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_facts import Gleaned
from dissector.engine.exchanges.fact_columns import Known
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.prefetch import ahead, side_by_side
from dissector.engine.reading.segment_source import Feed, FileProblems, Files
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.protocol.context import current, drawn, using

if TYPE_CHECKING:
    from dissector.protocol.definitions.schemas import Schemas

Tap = Callable[[int, int, bytes | None, int], None]
"""Takes connection, side, the next bytes of that stream (None for a gap), and how many."""


MOST_WORKERS = 2
"""Windows are paired one after the other; no work on them takes twice as long: more would wait."""


@dataclass(slots=True)
class Options:
    """
    How captures are read.

    Attributes:
        ports: Only connections on these ports are looked at, and taken for Kafka; empty: all, by
            content.
        max_frame_bytes: Larger frames are passed over as a problem.
        window_bytes: About how much of a file is in memory at a time.
        stdin: What `-` reads instead of standard input.
        stop: Ends the captures where they are when it is asked to.
        live: Whether windows of a pipe hold the requests that wait for their answers.
        jobs: How many windows may be worked on side by side, as far as that helps: each stage of
            reading has a thread or two, if more than one. What they give is the same.
        schemas: Message definitions over the built-in declarations: `Schemas.of("trunk.jar")`; by
            default those that are in use where the options are made.
    """

    ports: frozenset[int] = frozenset()
    max_frame_bytes: int = MAX_FRAME_BYTES
    window_bytes: int = WINDOW_BYTES
    stdin: BinaryIO | None = None
    jobs: int = 1
    stop: Stop = field(default_factory=Stop)
    live: bool = False
    schemas: Schemas | None = field(default_factory=current)


@dataclass(slots=True)
class Window:
    """
    What one window of a capture gave.

    Attributes:
        exchanges: Those that ended in it.
        low_water: The first packet whose messages may still come in later windows.
        problems: What was wrong with the files: file name and problem.
        gleaned: What they tell, where that was wanted of all windows.
        waiting: Requests that wait for their answers, where that is wanted; their status is
            WAITING.
    """

    exchanges: Exchanges
    low_water: int
    problems: FileProblems = field(default_factory=list)
    gleaned: Gleaned | None = None
    waiting: Exchanges | None = None


class Reading:
    """
    One pass over the files of a capture.

    Attributes:
        feed: Gives the segments.
        streams: Knows all TCP connections.
        conversations: What is said on them.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: Options,
        tap: Tap | None = None,
        feed: Feed | None = None,
    ) -> None:
        """Begin to read files, or what something else is fed with."""
        self.options = options
        self.feed = feed or Files(paths, options.window_bytes, options.stdin, options.stop)
        self._tap = tap
        self.streams = Streams()
        with using(options.schemas):
            self.conversations = Conversations(
                self.streams.connections, options.ports, options.max_frame_bytes
            )

    @property
    def packets(self) -> int:
        """How many packets were read so far."""
        return self.feed.packets

    @property
    def bytes(self) -> int:
        """How many bytes of packets were read so far."""
        return self.feed.bytes

    def windows(self) -> Iterator[Window]:
        """Read the files; the last windows hold what ends with the capture."""
        return self.through()

    def through(self, *works: Callable[[Any], Any]) -> Iterator[Any]:
        """
        Yield what becomes of each window by one work after the other.

        Reading, pairing and each work are stages that run side by side.
        """
        return drawn(self.options.schemas, self._through(works))

    def _through(self, works: Sequence[Callable[[Any], Any]]) -> Iterator[Any]:
        jobs, segments = self.options.jobs, self.feed.windows()
        if jobs <= 1:
            items: Iterator[Any] = self._wholly(segments)
            for work in works:
                items = map(work, items)
            return items
        items = ahead(self._wholly(ahead(segments) if jobs > 2 else segments))
        workers = min(jobs - 1, MOST_WORKERS)
        for work in works:
            items = side_by_side(items, work, workers, workers)
        return items

    def _wholly(self, windows: Iterable[tuple[Segments, FileProblems]]) -> Iterator[Window]:
        yield from self.advance(windows)
        yield from self.finish()

    def advance(self, windows: Iterable[tuple[Segments, FileProblems]]) -> Iterator[Window]:
        """Put the next segments in order and pair their frames; more may follow."""
        return drawn(self.options.schemas, self._advance(windows))

    def _advance(self, windows: Iterable[tuple[Segments, FileProblems]]) -> Iterator[Window]:
        for segments, problems in windows:
            exchanges = self._converse(self.streams.feed(segments))
            window = self._window(exchanges, problems)
            if segments.is_live and self.options.live:
                window.waiting = columns(self.conversations.waiting())
            del segments, exchanges
            yield window
            del window

    def finish(self) -> Iterator[Window]:
        """Yield what ends with the capture."""
        return drawn(self.options.schemas, self._finish())

    def _finish(self) -> Iterator[Window]:
        exchanges = self._converse(self.streams.finish())
        if len(exchanges):
            yield self._window(exchanges)
        yield self._window(self.conversations.finish())

    def _window(self, exchanges: Exchanges, problems: FileProblems | None = None) -> Window:
        return Window(exchanges, self.conversations.low_water(), problems or [])

    def files_of(self, packets: Ints) -> Coded:
        """Return the names of the files that hold packets."""
        return self.feed.files_of(packets)

    def sides(self, connection: int, client: int) -> tuple[str, str]:
        """Return client and broker of a connection as `address:port`."""
        ends = self.streams.connections.ends(connection)
        return endpoint_text(*ends[client]), endpoint_text(*ends[1 - client])

    def ends_of(self, connections: Ints) -> list[tuple[str, str]]:
        """Return both endpoints of connections as `address:port`."""
        known = self.streams.connections.columns(connections)
        sides = zip(known.address.tolist(), known.port.tolist(), strict=True)
        return [
            (endpoint_text(*addresses[0], ports[0]), endpoint_text(*addresses[1], ports[1]))
            for addresses, ports in sides
        ]

    def exchange(
        self, table: Exchanges, row: int, names: TopicNames, known: Known | None = None
    ) -> Exchange:
        """Return one row of a window as an object."""
        client, broker = self.sides(int(table.connection[row]), int(table.client[row]))
        packet = int(table.request.packet[row])
        if packet == NONE:
            packet = int(table.response.packet[row])
        with using(self.options.schemas):
            return Exchange(
                table,
                row,
                capture=self.feed.file_of(packet),
                client=client,
                broker=broker,
                names=names,
                known=known,
            )

    def _converse(self, chunks: Chunks) -> Exchanges:
        """Pair what the chunks hold, and let the tap see them first."""
        if self._tap is not None:
            self._show(chunks, self._tap)
        return self.conversations.feed(chunks)

    def _show(self, chunks: Chunks, tap: Tap) -> None:
        data, held = chunks.data.data, chunks.held.data
        rows = zip(
            chunks.connection.tolist(),
            chunks.side.tolist(),
            chunks.kind.tolist(),
            chunks.origin.tolist(),
            chunks.start.tolist(),
            chunks.length.tolist(),
            strict=True,
        )
        for connection, side, kind, origin, start, length in rows:
            if kind == DATA:
                piece = (held if origin else data)[start : start + length].tobytes()
                tap(connection, side, piece, length)
            elif kind == GAP:
                tap(connection, side, None, length)
