"""The rows of `Chunks`, as they are told."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from dissector.capture.columns import DATA, END, GAP, IN_DATA, IN_HELD, NEVER, Bytes, Chunks
from dissector.capture.waiting import Piece, Waiting

_COLUMNS = 11


@dataclass(slots=True)
class Stalls:
    """
    What waits on the two sides of a connection, and what has been told of it.

    Attributes:
        connection: Number of the connection.
        waiting: Of side 0 and 1, the segments behind a hole; None where none are.
        told: Of side 0 and 1, the horizon in the newest row.
    """

    connection: int
    waiting: list[Waiting | None]
    told: tuple[int, int] = (NEVER, NEVER)

    def horizon(self) -> tuple[int, int]:
        """Return for each side the lowest packet whose bytes wait."""
        return _first_packet(self.waiting[0]), _first_packet(self.waiting[1])


def _first_packet(waiting: Waiting | None) -> int:
    first = None if waiting is None else waiting.first
    return NEVER if first is None else first.packet


class Release:
    """
    Gathers rows in one window.

    Attributes:
        packet: The packet that is being looked at.
        rows: Eleven numbers a row, in the order of the columns of `Chunks`.
    """

    def __init__(self) -> None:
        self.packet = 0
        self.rows = array("q")
        self._held = bytearray()
        self._fresh: list[Piece] = []

    def piece(self, stalls: Stalls, side: int, piece: Piece) -> None:
        """Tell the bytes of a piece that has come to its turn."""
        piece.released = True
        if not piece.captured:
            return
        origin, start = IN_DATA, piece.start
        if piece.kept is not None:
            origin, start = IN_HELD, len(self._held)
            self._held += piece.kept
        self._add(stalls, side, DATA, origin, start, piece.captured, piece.packet, piece.time_ns)

    def gap(self, stalls: Stalls, side: int, length: int, packet: int, time_ns: int) -> None:
        """Tell that bytes are missing."""
        self._add(stalls, side, GAP, IN_DATA, 0, length, packet, time_ns)

    def end(self, stalls: Stalls, side: int, time_ns: int) -> None:
        """Tell that the packet that is being looked at ended the connection."""
        self._add(stalls, side, END, IN_DATA, 0, 0, self.packet, time_ns)

    def lift(self, stalls: Stalls, time_ns: int) -> None:
        """Tell where something no longer waits of which no row has told."""
        for side in (0, 1):
            if stalls.horizon()[side] > stalls.told[side]:
                self._add(stalls, side, DATA, IN_DATA, 0, 0, self.packet, time_ns)

    def hold(self, piece: Piece) -> None:
        """Keep a piece's bytes if it still waits when the window is over."""
        self._fresh.append(piece)

    def take(self, data: Bytes) -> Chunks:
        """Return the rows of the window with these bytes, and begin the next."""
        for piece in self._fresh:
            if not piece.released and piece.kept is None:
                piece.kept = data[piece.start : piece.start + piece.captured].tobytes()
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, _COLUMNS)
        held = np.frombuffer(bytes(self._held), dtype=np.uint8)
        self.rows = array("q")
        self._held = bytearray()
        self._fresh = []
        connection, side, kind, origin, start, length, packet, time_ns, release = (
            np.ascontiguousarray(rows[:, :9].T)
        )
        return Chunks(
            data=data,
            held=held,
            connection=connection,
            side=side.astype(np.int8),
            kind=kind.astype(np.int8),
            origin=origin.astype(np.int8),
            start=start,
            length=length,
            packet=packet,
            time_ns=time_ns,
            release=release,
            horizon=rows[:, 9:].copy(),
        )

    def _add(
        self,
        stalls: Stalls,
        side: int,
        kind: int,
        origin: int,
        start: int,
        length: int,
        packet: int,
        time_ns: int,
    ) -> None:
        stalls.told = stalls.horizon()
        self.rows.extend(
            (
                stalls.connection,
                side,
                kind,
                origin,
                start,
                length,
                packet,
                time_ns,
                self.packet,
                *stalls.told,
            )
        )
