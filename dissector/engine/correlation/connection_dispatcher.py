"""
All conversations of a capture: chunks in, exchanges out, window by window.

A fold: what a window gives depends on the windows before it only through what is kept, which is the
bytes of unfinished frames and of requests that wait, and a few hundred bytes for each connection.

What goes by the rules is led by one loop over tables (`pairing`); the rest, for as long as it is
odd, by objects (`Conversation`), connection by connection. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture.columns import END, NEVER, Chunks
from dissector.capture.tcp.connections import Endpoint
from dissector.engine.correlation import open_requests as limits
from dissector.engine.correlation.correlator_kernel import STOPPED, WANTS, WHOLLY, begin, pair
from dissector.engine.correlation.exchange_rows import Row
from dissector.engine.correlation.frame_checks_kernel import learn, new_rules
from dissector.engine.correlation.framer import MAX_FRAME_BYTES
from dissector.engine.correlation.handover import frame_of, new_talk
from dissector.engine.correlation.slow_path import Connections, Objects
from dissector.engine.correlation.state_columns import (
    AT,
    CLIENT,
    COPIES,
    COUNT,
    ENTERED,
    FAR,
    FIRST,
    HEAD,
    KAFKA,
    LIVE,
    MAX_FRAME,
    MODE,
    MOST_OPEN,
    MOST_OPEN_BYTES,
    NEXT,
    OBJECT,
    OTHER,
    PACKET,
    PIECES,
    ROWS,
    SIDE_WIDTH,
    SIDES,
    SKIPPED,
    TAKEN,
    TELLERS,
    TLS,
    UNBEGUN,
    USED,
    WANTED,
)
from dissector.engine.correlation.state_tables import Tables
from dissector.engine.tables.column_types import longer
from dissector.engine.tables.exchange_table import NONE, WAITING, Exchanges, Ints

WORK, BYTES_A_STEP = 5, 64
"""What a chunk and its bytes cost the loop, in steps of ten nanoseconds."""

_SPEAKS = {KAFKA: "kafka", TLS: "tls", OTHER: "other"}


class Talk(NamedTuple):
    """
    What is known of a conversation.

    Attributes:
        speaks: `kafka`, `tls`, `other`, or empty while that is open.
        client: The side that sends requests; None while that is open.
        skipped: Of each side, bytes that were passed over because no frame was believed in them.
        entered: Of each side, the offset in the stream at which frames were first believed.
    """

    speaks: str
    client: int | None
    skipped: tuple[int, int]
    entered: tuple[int | None, int | None]


class Conversations:
    """
    Pairs requests and responses on all connections.

    Attributes:
        in_parts: Whether there are other parts, whose brokers are not known here; then all that may
            be brokers are taken for some.
        brokers: At the end: those of which exchanges were told, by network and endpoint.
        doubts: At the end: the connections and sides of which few responses and nothing else is
            there, so that only brokers are believed to have sent them.
    """

    def __init__(
        self,
        connections: Connections,
        ports: frozenset[int] = frozenset(),
        max_frame_bytes: int = MAX_FRAME_BYTES,
        *,
        by_rules: bool = True,
    ) -> None:
        """
        Begin a capture.

        Args:
            connections: Of the capture.
            ports: Only connections on these are looked at, and taken for Kafka; empty: all.
            max_frame_bytes: Larger frames are passed over as a problem.
            by_rules: Let objects lead all connections, if false: slow, and the truth for tests.
        """
        self._connections = connections
        self._ports = ports
        self._by_rules = by_rules
        self._tables = Tables()
        self._tables.numbers[MAX_FRAME] = max_frame_bytes
        self._rules = new_rules()
        self._objects = Objects(self._tables, connections, max_frame_bytes, keep=not by_rules)
        self._begun: Ints = np.zeros(0, np.int64)
        self._count = 0
        self.in_parts = False
        self.brokers: frozenset[tuple[int, Endpoint]] = frozenset()
        self.doubts: dict[int, int] = {}

    def feed(self, chunks: Chunks) -> Exchanges:
        """Take the chunks of the next window; return the exchanges that ended in it."""
        return self._feed(chunks)

    def _feed(self, chunks: Chunks, ended: Collection[int] | None = None) -> Exchanges:
        """Take chunks; those of `ended` connections are their last ones."""
        tables = self._tables
        tables.begin(chunks.data, len(chunks) + 16)
        tables.numbers[[AT, TAKEN]] = 0
        tables.numbers[MOST_OPEN] = limits.MAX_OPEN
        tables.numbers[MOST_OPEN_BYTES] = limits.MAX_OPEN_BYTES
        self._begin(chunks)
        self._objects.at_end = ended is not None
        self._run(chunks, tables.hold(chunks.held) - FAR)
        if ended is not None:
            self.brokers = self._objects.brokers()
            brokers = None if self.in_parts else self.brokers
            self.doubts = self._objects.decide(brokers, ended)
        return tables.end()

    def finish(self, numbers: Ints | None = None) -> Exchanges:
        """
        Return the exchanges that end with the capture: each conversation ends, as they began.

        Args:
            numbers: Only these connections end; None: all.
        """
        begun = self._begun[: self._count].copy()
        if numbers is not None:
            begun = begun[np.isin(begun, numbers)]
        nothing, small = np.zeros_like(begun), np.zeros(len(begun), np.int8)
        none = np.zeros(0, np.uint8)
        return self._feed(
            Chunks(
                data=none,
                held=none,
                connection=begun,
                side=small,
                kind=np.full_like(small, END),
                origin=small,
                start=nothing,
                length=nothing,
                packet=nothing,
                time_ns=nothing,
                release=nothing,
                horizon=np.full((len(begun), 2), NEVER, np.int64),
            ),
            ended=set(begun.tolist()),
        )

    def keep(self, numbers: Ints) -> None:
        """
        Forget all connections but these, in order; each gets the number of its place.

        `finish` must have been asked for the others.
        """
        tables, size = self._tables, int(self._begun[: self._count].max(initial=-1)) + 1
        places = np.full(max(size, int(numbers.max(initial=-1)) + 1), NONE, np.int64)
        places[numbers] = np.arange(len(numbers))
        talks = longer(tables.talks, len(places))
        gone = talks[np.flatnonzero(places == NONE)]
        for side in (SIDES, SIDES + SIDE_WIDTH):
            for first in gone[gone[:, MODE] == KAFKA, side + HEAD].tolist():
                for _ in tables.chain(first):
                    pass
        tables.talks = talks[numbers]
        begun = places[self._begun[: self._count]]
        self._begun = begun[begun != NONE]
        self._count = len(self._begun)
        self._objects.keep(places)

    @property
    def crowded(self) -> int:
        """How often it was decided early, for lack of room, who is a broker."""
        return self._objects.crowded

    def low_water(self) -> int:
        """Return the first packet with a frame that waits for an answer or its turn."""
        tables = self._tables
        waiting = tables.nodes[: tables.number(USED), PACKET]
        odd = [talk.low_water for talk in self._objects.all.values()]
        return min([int(waiting.min(initial=NEVER)), *odd])

    def waiting(self) -> list[Row]:
        """Return the requests that wait for their answers, between two windows."""
        tables = self._tables
        talks, rows = tables.talks, list[Row]()
        for number in np.flatnonzero((talks[:, MODE] == KAFKA) & (talks[:, COUNT] > 0)).tolist():
            client, at = int(talks[number, CLIENT]), int(talks[number, FIRST])
            while at >= 0:
                node = tables.nodes[at].tolist()
                rows.append(Row(number, WAITING, client, frame_of(tables, client, node), None))
                at = node[NEXT]
        for number, talk in self._objects.all.items():
            for each in talk.open_requests.waiting():
                frame = each.frame
                rows.append(Row(number, WAITING, frame.side, frame, None, frame.token))
        return rows

    def get(self, connection: int) -> Talk | None:
        """Return what is known of a conversation; None where no side said anything."""
        if connection >= len(self._tables.talks):
            return None
        row = self._tables.talks[connection].tolist()
        if row[MODE] == UNBEGUN:
            return None
        if row[MODE] == OBJECT:
            talk = self._objects.all[connection]
            first, second = talk.streams
            skipped, entered = (first.skipped, second.skipped), (first.entered, second.entered)
            return Talk(talk.speaks, talk.client, skipped, entered)
        a, b = row[SIDES : SIDES + SIDE_WIDTH], row[SIDES + SIDE_WIDTH :]
        return Talk(
            _SPEAKS.get(row[MODE], ""),
            row[CLIENT] if row[MODE] == KAFKA else None,
            (a[SKIPPED], b[SKIPPED]),
            (_entered(a[ENTERED]), _entered(b[ENTERED])),
        )

    def __iter__(self) -> Iterator[Talk]:
        """Yield what is known of each conversation, in the order in which they began."""
        talks = map(self.get, self._begun[: self._count].tolist())
        return (talk for talk in talks if talk is not None)

    def _begin(self, chunks: Chunks) -> None:
        """Begin the conversations of connections of which these are the first chunks."""
        tables, connections = self._tables, self._connections
        tables.talks = longer(tables.talks, len(connections))
        self._begun = longer(self._begun, len(connections))
        numbers = chunks.connection
        count = begin(numbers, tables.talks, self._begun, self._count, work=len(numbers) // 2)
        begun = self._begun[self._count : count]
        self._count = count
        known = connections.columns(begun)
        client = np.full(len(begun), -1)
        for side in (0, 1):
            for port in self._ports:
                client[known.port[:, side] == port] = 1 - side
        for whole in (False, True):
            for who in (-1, 0, 1):
                chosen = begun[(known.syn_seen == whole) & (client == who)]
                tables.talks[chosen] = new_talk(whole, None if who < 0 else who)
        if self._ports:
            tables.talks[begun[client < 0], MODE] = OTHER
        if not self._by_rules:
            self._begin_objects(begun.tolist(), client.tolist())

    def _begin_objects(self, numbers: list[int], clients: list[int]) -> None:
        for number, client in zip(numbers, clients, strict=True):
            talk = self._objects.begin(number)
            self._tables.talks[number, MODE] = OBJECT
            if client >= 0:
                talk.assume(client)
            elif self._ports:
                talk.is_other()

    def _run(self, chunks: Chunks, held_from: int) -> None:
        """Take the chunks, by the loop as far as it can."""
        tables, numbers = self._tables, self._tables.numbers
        work = WORK * len(chunks) + int(chunks.length.sum()) // BYTES_A_STEP
        while numbers[AT] < len(chunks):
            said = STOPPED
            if self._by_rules:
                said = pair(
                    chunks.connection,
                    chunks.side,
                    chunks.kind,
                    chunks.origin,
                    chunks.start,
                    chunks.length,
                    chunks.packet,
                    chunks.time_ns,
                    chunks.horizon,
                    held_from,
                    tables.rows.shape[1],
                    chunks.data,
                    tables.held,
                    numbers,
                    tables.talks,
                    tables.nodes,
                    tables.rows,
                    tables.copies,
                    tables.tellers,
                    self._rules,
                    tables.first,
                    work=work,
                )
                work = 0
            if said == WHOLLY:
                return
            if said == WANTS:
                learn(self._rules, tables.number(WANTED))
            elif said == STOPPED:
                tables.put_together()
                at, taken = tables.number(AT), tables.number(TAKEN)
                numbers[AT] = self._objects.take(chunks, at, taken, held_from)
            else:
                self._widen(chunks, tables.number(AT))

    def _widen(self, chunks: Chunks, at: int) -> None:
        """Make room for all that a chunk may bring."""
        tables = self._tables
        talk = tables.talks[chunks.connection[at]].tolist()
        more = int(chunks.length[at]) // 8 + 2
        pieces = talk[SIDES + PIECES] + talk[SIDES + SIDE_WIDTH + PIECES]
        tables.widen_rows(tables.number(ROWS) + talk[COUNT] + more)
        tables.nodes = longer(tables.nodes, tables.number(LIVE) + more)
        tables.copies = longer(tables.copies, tables.number(COPIES) + pieces + 2)
        tables.tellers = longer(tables.tellers, tables.number(TELLERS) + 1)


def _entered(at: int) -> int | None:
    return None if at == NONE else at
