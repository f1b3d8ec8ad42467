"""Correlation with objects: the reference for `dissector.engine.correlation.correlator`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from dissector.capture.columns import DATA, END, GAP, NEVER, Chunks
from dissector.capture.prefaces import Preface, read_preface
from dissector.capture.tcp.connections import END_REASONS, Endpoint
from dissector.engine.correlation import state_tables as limits
from dissector.engine.correlation.correlator import ConnectionState
from dissector.engine.correlation.doubtful import Connections
from dissector.engine.tables.exchange_table import ENDING_AT, Exchanges
from dissector.engine.tables.login_learning import learn
from dissector.engine.tables.logins import Logins
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from tests.reference.correlation.connection_correlator import ConnectionCorrelator
from tests.reference.correlation.exchange_rows import ExchangeRow, broken_off, to_exchange_table


class ReferenceCorrelator:
    """Correlates requests and responses on all connections, as `Correlator`."""

    def __init__(
        self,
        connections: Connections,
        ports: frozenset[int] = frozenset(),
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        """Start a capture; the arguments are those of `Correlator`."""
        self._connections = connections
        self._ports = ports
        self._max_frame_bytes = max_frame_bytes
        self._correlators: dict[int, ConnectionCorrelator] = {}
        self._rows: list[ExchangeRow] = []
        self._broken: list[int] = []
        self._brokers: set[tuple[int, Endpoint]] = set()
        self._doubtful: list[int] = []
        self._doubtful_bytes = 0
        self._prefaces: dict[tuple[int, int], Preface] = {}
        self.logins = Logins()
        self.brokers: frozenset[tuple[int, Endpoint]] = frozenset()
        self.doubtful_sides: dict[int, int] = {}
        self._at_end = False

    def feed(self, chunks: Chunks) -> Exchanges:
        """Process the chunks of the next window; return the exchanges that ended in it."""
        for at, number in enumerate(chunks.connection.tolist()):
            self._add_chunk(self._correlator(number), chunks, at)
        return self._take_rows()

    def finish(self, numbers: None = None) -> Exchanges:
        """Return the exchanges that end with the capture; all connections end."""
        self._at_end = True
        for correlator in self._correlators.values():
            correlator.barriers = NEVER, NEVER
            self._end(correlator)
            self._read_prefaces(correlator)
        self.brokers = frozenset(self._brokers)
        self.doubtful_sides = self._resolve(self.brokers)
        return self._take_rows()

    def low_watermark(self) -> int:
        """Return the first packet with a frame that waits for a response or for its turn."""
        marks = (correlator.low_watermark for correlator in self._correlators.values())
        return min(marks, default=NEVER)

    def records_from(self) -> int:
        """Return at most what `Correlator` does: any request in flight counts."""
        return self.low_watermark()

    def __iter__(self) -> Iterator[ConnectionState]:
        """Yield the state of each connection, in the order of their start."""
        for number, correlator in self._correlators.items():
            a, b = correlator.streams
            sizes = [self._prefaces.get((number, side)) for side in (0, 1)]
            first, second = (each.size if each else 0 for each in sizes)
            yield ConnectionState(
                correlator.speaks,
                correlator.client if correlator.speaks == "kafka" else None,
                (a.skipped, b.skipped),
                (a.entered, b.entered),
                (first, second),
            )

    def _correlator(self, number: int) -> ConnectionCorrelator:
        if number not in self._correlators:
            connection = self._connections[number]
            made = ConnectionCorrelator(
                number, connection.syn_seen, self._emit, self._max_frame_bytes
            )
            self._correlators[number] = made
            ports = connection.a[2], connection.b[2]
            clients = [1 - side for side in (1, 0) if ports[side] in self._ports]
            if clients:
                made.assume_kafka(clients[0])
            elif self._ports:
                made.mark_other()
        return self._correlators[number]

    def _add_chunk(self, correlator: ConnectionCorrelator, chunks: Chunks, at: int) -> None:
        start, length, side = (int(each[at]) for each in (chunks.start, chunks.length, chunks.side))
        packet, time_ns = int(chunks.packet[at]), int(chunks.time_ns[at])
        correlator.barriers = int(chunks.barrier[at, 0]), int(chunks.barrier[at, 1])
        if chunks.kind[at] != END:
            rtt_ns, resent_ns = int(chunks.rtt_ns[at]), int(chunks.resent_ns[at])
            correlator.rtt_ns[side] = rtt_ns if rtt_ns >= 0 else correlator.rtt_ns[side]
            correlator.resent_ns[side] = max(resent_ns, correlator.resent_ns[side])
        if chunks.kind[at] == DATA:
            source = chunks.carry_over if chunks.origin[at] else chunks.data
            correlator.add_data(side, source[start : start + length].tobytes(), packet, time_ns)
        elif chunks.kind[at] == GAP:
            correlator.add_gap(side, length, packet, time_ns)
        else:
            self._end(correlator)
        self._read_prefaces(correlator)

    def _end(self, correlator: ConnectionCorrelator) -> None:
        if correlator.doubtful_side is not None:
            return
        correlator.end()
        if correlator.doubtful_side is not None:
            self._doubtful.append(correlator.connection)
            self._doubtful_bytes += sum(len(stream.buffer) for stream in correlator.streams)
            if self._doubtful_bytes > limits.MAX_DOUBTFUL_BYTES:
                self._doubtful_bytes = 0
                self._resolve(self._brokers)

    def _resolve(self, brokers: Collection[tuple[int, Endpoint]]) -> dict[int, int]:
        """Decide doubtful connections that have ended: a known broker needs fewer responses."""
        sides: dict[int, int] = {}
        waiting, self._doubtful = self._doubtful, []
        known = frozenset(brokers)
        for number in waiting:
            correlator, connection = self._correlators[number], self._connections[number]
            side = correlator.doubtful_side
            assert side is not None
            sides[number] = side
            ends = (connection.network, connection.a), (connection.network, connection.b)
            correlator.resolve_doubt(ends[side] in known and ends[1 - side] not in known)
        return sides

    def _read_prefaces(self, correlator: ConnectionCorrelator) -> None:
        for stream in correlator.streams:
            if stream.preface and correlator.speaks == "kafka":
                is_client = stream.side == correlator.client
                preface = read_preface(stream.preface, is_client=is_client)
                if preface.size:
                    self._prefaces[correlator.connection, stream.side] = preface
                stream.preface = b""

    def _emit(self, row: ExchangeRow) -> None:
        connection = self._connections[row.connection]
        self._brokers.add((connection.network, (connection.b, connection.a)[row.client]))
        self._rows.append(row)
        broken = broken_off(row)
        ending = END_REASONS.index(connection.ended) << ENDING_AT
        self._broken.append(0 if not broken or self._at_end else broken | ending)

    def _take_rows(self) -> Exchanges:
        exchanges = to_exchange_table(self._rows)
        exchanges.broken_off[:] = np.array(self._broken, np.int8)
        self._rows, self._broken = [], []
        learn(self.logins, exchanges)
        exchanges.logins = self.logins
        return exchanges
