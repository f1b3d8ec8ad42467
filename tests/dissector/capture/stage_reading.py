"""Captures read through all three stages, with results as plain values."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from dissector.capture.columns import DATA, END, IN_WINDOW, Chunks
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.packets.layers import Layers
from dissector.capture.tcp.reassembly import Streams
from tests.reference.tcp.reference_streams import ReferenceStreams

Piece: TypeAlias = bytes | int
"""Bytes of a stream, or how many are missing."""


@dataclass(frozen=True)
class Row:
    """A row of `Chunks` with its bytes; of a gap, the number; of an end, None."""

    connection: int
    side: int
    what: bytes | int | None
    packet: int
    time_ns: int
    release: int
    horizon: tuple[int, int]


class Reading:
    """The result of reading one capture."""

    def __init__(
        self,
        source: Path | bytes,
        window_bytes: int = 1 << 20,
        *,
        one_by_one: bool = False,
        moved: bool = False,
    ) -> None:
        """Read a capture; `moved`: each window in another process."""
        self.layers = Layers()
        self.tcp = cast("Streams", ReferenceStreams()) if one_by_one else Streams()
        self.rows: list[Row] = []
        stdin = io.BytesIO(source) if isinstance(source, bytes) else None
        path = source if isinstance(source, Path) else "-"
        for packets in read_packets([path], window_bytes=window_bytes, stdin=stdin):
            segments = self.layers.segments(packets)
            if moved:
                self.tcp = pickle.loads(pickle.dumps(self.tcp))
            self.rows += _rows(self.tcp.feed(segments))
        self.layers.finish()
        self.steps: list[int] = []
        for chunks in self.tcp.finish():
            self.steps.append(len(chunks))
            self.rows += _rows(chunks)

    @property
    def streams(self) -> dict[tuple[int, int], list[Piece]]:
        """Each stream's bytes and gaps, neighbours joined, by connection and side."""
        streams: dict[tuple[int, int], list[Piece]] = {}
        for row in self.rows:
            if row.what is None or row.what == b"":
                continue
            pieces = streams.setdefault((row.connection, row.side), [])
            if pieces and type(pieces[-1]) is type(row.what):
                pieces[-1] += row.what  # type: ignore[operator]
            else:
                pieces.append(row.what)
        return streams

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Connection and side of the reported ends."""
        return [(row.connection, row.side) for row in self.rows if row.what is None]


def _rows(chunks: Chunks) -> Iterator[Row]:
    for i in range(len(chunks)):
        kind, length = int(chunks.kind[i]), int(chunks.length[i])
        what: bytes | int | None = length
        if kind == DATA:
            where = chunks.data if chunks.origin[i] == IN_WINDOW else chunks.carry_over
            start = int(chunks.start[i])
            what = where[start : start + length].tobytes()
            assert len(what) == length
        elif kind == END:
            what = None
        yield Row(
            int(chunks.connection[i]),
            int(chunks.side[i]),
            what,
            int(chunks.packet[i]),
            int(chunks.time_ns[i]),
            int(chunks.release[i]),
            (int(chunks.barrier[i, 0]), int(chunks.barrier[i, 1])),
        )
