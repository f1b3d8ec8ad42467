"""
A capture from its files to its exchanges: the stages in their order.

files -> `Packets` -> layers -> `Segments` -> tcp -> `Chunks` -> conversations -> `Exchanges`. A
`Reading` is one pass over the files; a `Capture` can be read more than once, unless it comes from
standard input.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from dissector.capture.addresses import endpoint_text
from dissector.capture.columns import DATA, GAP, NEVER, Chunks, Packets
from dissector.capture.connections import Connection, Endpoint
from dissector.capture.files import WINDOW_BYTES, read_packets
from dissector.capture.layers import Layers
from dissector.capture.tcp import Streams
from dissector.engine import table as tables
from dissector.engine.conversation import Conversation
from dissector.engine.exchange import Exchange
from dissector.engine.exchanges import NONE, Exchanges, Row, columns
from dissector.engine.frames import MAX_FRAME_BYTES
from dissector.engine.known import Known, known
from dissector.engine.records import record_rows
from dissector.engine.topics import TopicNames
from dissector.errors import Problem

if TYPE_CHECKING:
    import polars

Tap = Callable[[int, int, bytes | None, int], None]
"""Takes connection, side, the next bytes of that stream (None for a gap), and how many."""


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
    """

    ports: frozenset[int] = frozenset()
    max_frame_bytes: int = MAX_FRAME_BYTES
    window_bytes: int = WINDOW_BYTES
    stdin: BinaryIO | None = None


@dataclass(slots=True)
class Window:
    """
    What one window of a capture gave.

    Attributes:
        exchanges: Those that ended in it.
        problems: What was wrong with the files: file name and problem.
        packets: How many packets were read.
    """

    exchanges: Exchanges
    problems: list[tuple[str, Problem]] = field(default_factory=list)
    packets: int = 0


class Reading:
    """
    One pass over the files of a capture.

    Attributes:
        layers: Counts what was passed over below TCP.
        streams: Knows all TCP connections.
        conversations: What is known of each connection, by its number.
        packets: How many packets were read so far.
        bytes: How many bytes of packets.
    """

    def __init__(self, paths: Sequence[str], options: Options, tap: Tap | None = None) -> None:
        self.paths = paths
        self._tap = tap
        self.options = options
        self.layers = Layers()
        self.streams = Streams()
        self.conversations: dict[int, Conversation] = {}
        self.packets = 0
        self.bytes = 0
        self._file_starts: list[int] = []
        self._file_names: list[str] = []
        self._rows: list[Row] = []
        self._brokers: set[tuple[int, Endpoint]] = set()

    def windows(self) -> Iterator[Window]:
        """Read the files; the last window holds what ends with the capture."""
        options = self.options
        for packets in read_packets(
            self.paths, window_bytes=options.window_bytes, stdin=options.stdin
        ):
            self._note_files(packets)
            self._converse(self.streams.feed(self.layers.segments(packets)))
            yield Window(self._take(), packets.problems, len(packets))
        self._converse(self.streams.finish())
        self.layers.finish()
        for conversation in self.conversations.values():
            self._end(conversation)
        yield Window(self._take())

    def low_water(self) -> int:
        """Return the first packet whose messages are not all told yet."""
        return min((c.low_water for c in self.conversations.values()), default=NEVER)

    def file_of(self, packet: int) -> str:
        """Return the name of the file that holds a packet."""
        at = bisect_right(self._file_starts, packet) - 1
        return self._file_names[max(at, 0)]

    def sides(self, connection: int, client: int) -> tuple[str, str]:
        """Return client and broker of a connection as `address:port`."""
        known = self.streams.connections[connection]
        ends = endpoint_text(*known.a), endpoint_text(*known.b)
        return ends[client], ends[1 - client]

    def exchange(
        self, table: Exchanges, row: int, names: TopicNames, read: Known | None = None
    ) -> Exchange:
        """Return one row of a window as an object."""
        client, broker = self.sides(int(table.connection[row]), int(table.client[row]))
        packet = int(table.request.packet[row])
        if packet == NONE:
            packet = int(table.response.packet[row])
        return Exchange(
            table,
            row,
            capture=self.file_of(packet),
            client=client,
            broker=broker,
            names=names,
            known=read,
        )

    def _note_files(self, packets: Packets) -> None:
        self.packets += len(packets)
        self.bytes += int(packets.captured.sum())
        if not len(packets):
            return
        name = str(self.paths[int(packets.file[0])])
        if not self._file_names or self._file_names[-1] != name:
            self._file_starts.append(packets.first)
            self._file_names.append(name)

    def _take(self) -> Exchanges:
        rows, self._rows = self._rows, []
        return columns(rows)

    def _converse(self, chunks: Chunks) -> None:
        """Give each chunk to the conversation of its connection."""
        data, held = chunks.data.data, chunks.held.data
        rows = zip(
            chunks.connection.tolist(),
            chunks.side.tolist(),
            chunks.kind.tolist(),
            chunks.origin.tolist(),
            chunks.start.tolist(),
            chunks.length.tolist(),
            chunks.packet.tolist(),
            chunks.time_ns.tolist(),
            chunks.horizon.tolist(),
            strict=True,
        )
        for connection, side, kind, origin, start, length, packet, time_ns, horizon in rows:
            conversation = self.conversations.get(connection) or self._begin(connection)
            conversation.horizon = horizon
            if kind == DATA:
                piece = (held if origin else data)[start : start + length].tobytes()
                if self._tap is not None:
                    self._tap(connection, side, piece, length)
                conversation.data(side, piece, packet, time_ns)
            elif kind == GAP:
                if self._tap is not None:
                    self._tap(connection, side, None, length)
                conversation.gap(side, length, packet, time_ns)
            else:
                self._end(conversation)

    def _begin(self, number: int) -> Conversation:
        known: Connection = self.streams.connections[number]
        conversation = Conversation(
            number, known.syn_seen, self._rows_append, self.options.max_frame_bytes
        )
        self.conversations[number] = conversation
        ports = self.options.ports
        if ports and known.b[2] in ports:
            conversation.assume(0)
        elif ports and known.a[2] in ports:
            conversation.assume(1)
        elif ports:
            conversation.is_other()
        return conversation

    def _rows_append(self, row: Row) -> None:
        self._rows.append(row)
        known = self.streams.connections[row.connection]
        self._brokers.add((known.network, (known.b, known.a)[row.client]))

    def _end(self, conversation: Conversation) -> None:
        """End a conversation; who is a broker elsewhere is believed to be one here on less."""
        if conversation.client is None:
            known = self.streams.connections[conversation.connection]
            ends = (known.network, known.a), (known.network, known.b)
            brokers = [side for side in (0, 1) if ends[side] in self._brokers]
            conversation.likely_broker = brokers[0] if len(brokers) == 1 else None
        conversation.end()


class Capture:
    """
    One or several files that are one capture.

    Attributes:
        paths: The files in their order; `-` is standard input.
        names: What is known of topic ids.
        tap: Is given all stream bytes as they go by.
        reading: The pass that is under way, or the last one; None before the first.
    """

    def __init__(self, paths: Sequence[str | Path], options: Options | None = None) -> None:
        self.paths = [str(path) for path in paths]
        self.options = options or Options()
        self.names = TopicNames(None if "-" in self.paths else self._read_names)
        self.tap: Tap | None = None
        self.reading: Reading | None = None

    def windows(self) -> Iterator[Window]:
        """Read the capture, window by window."""
        self.reading = Reading(self.paths, self.options, self.tap)
        yield from self.reading.windows()

    def __iter__(self) -> Iterator[Exchange]:
        """Read the capture, exchange by exchange, in the order in which they end."""
        for window in self.windows():
            yield from self.exchanges_of(window)

    def exchanges_of(self, window: Window) -> Iterator[Exchange]:
        """Yield the exchanges of a window as objects."""
        assert self.reading is not None
        for row, read in enumerate(known(window.exchanges)):
            exchange = self.reading.exchange(window.exchanges, row, self.names, read)
            exchange.learn()
            yield exchange

    def batches(self) -> Iterator[polars.DataFrame]:
        """Yield the exchanges as tables of some ten thousand rows each."""
        rows = (exchange.row() for exchange in self)
        return tables.frames(rows, tables.exchange_schema())

    def exchanges(self) -> polars.DataFrame:
        """Return all exchanges as one table, with the columns of `pairs`."""
        return _joined(self.batches())

    def record_batches(self) -> Iterator[polars.DataFrame]:
        """Yield the records as tables of some ten thousand rows each."""
        rows = (row for exchange in self for row in record_rows(exchange))
        return tables.frames(rows, tables.record_schema())

    def records(self) -> polars.DataFrame:
        """Return all records of Produce requests and Fetch responses as one table."""
        return _joined(self.record_batches())

    def _read_names(self) -> dict[UUID, str]:
        """Read the whole capture for the names of topic ids; only what may tell them is decoded."""
        reading = Reading(self.paths, self.options)
        names = TopicNames()
        for window in reading.windows():
            for row in range(len(window.exchanges)):
                reading.exchange(window.exchanges, row, names).learn()
        return names.known


def _joined(parts: Iterator[polars.DataFrame]) -> polars.DataFrame:
    import polars

    return polars.concat(list(parts))
