"""
IP fragments of which others lie in another range: they are few, and looked at all together.

The index pass gives what was incomplete at the end of a range. What those packets make whole, in
the order of the collection, comes to the range that holds the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Packets, Segments
from dissector.capture.packets.layers import Layers
from pipeline.split.byte_ranges import Range, RangeScan
from pipeline.split.connection_keys import KEY, ConnectionCounts, KeySet
from pipeline.split.segment_rows import select_rows
from pipeline.split.shards import pack_shard, unpack_shards

_SCHEMA = pa.schema(
    {
        "packet": pa.int64(),
        "time_ns": pa.int64(),
        "original": pa.int64(),
        "link": pa.int32(),
        "data": pa.binary(),
    }
)
"""Packets, by their numbers in their range."""

_Packet = tuple[int, int, int, bytes]


class SplitDatagrams:
    """
    Fragments that were not whole at the end of their files, while file after file comes.

    All parts are told of all of them, and each takes the segments of its own connections.
    """

    def __init__(self) -> None:
        self._layers = Layers()

    def reassemble(
        self, loose: bytes | None, first_packet: int, part: int, parts: int
    ) -> tuple[Segments, list[str]] | None:
        """
        Return the segments of a part that the next file makes whole; None where there are none.

        Args:
            loose: The fragments of the file, packed; None where it has none.
            first_packet: The number of its first packet.
            part: The part.
            parts: How many there are.

        Returns:
            The segments, and the names of their networks by number.
        """
        if not loose:
            return None
        rows = from_bytes(loose).to_pylist()
        segments = self._layers.segments(_window(rows))
        numbers = np.array([first_packet + row["packet"] for row in rows], np.int64)
        segments.packet = numbers[segments.packet]
        tally = ConnectionCounts()
        tally.add(segments)
        into, _ = KeySet(tally.rows()[:, KEY]).assign_parts(segments, parts)
        mine = np.flatnonzero(into == part)
        return (select_rows(segments, mine), self._layers.networks) if len(mine) else None


class FragmentCollector:
    """Keeps the packets of incomplete datagrams while a range is read."""

    def __init__(self) -> None:
        self._kept: dict[int, _Packet] = {}

    def update(self, packets: Packets, incomplete: Sequence[int]) -> None:
        """Keep those of a window; forget what has become whole or was given up."""
        self._kept = {
            number: self._kept.get(number) or _packet(packets, number - packets.first)
            for number in incomplete
        }

    def packed(self) -> bytes:
        """Return what is left, as bytes; none where nothing is."""
        if not self._kept:
            return b""
        rows = [(number, *packet) for number, packet in self._kept.items()]
        columns = [
            pa.array(column, kind)
            for column, kind in zip(zip(*rows, strict=True), _SCHEMA.types, strict=True)
        ]
        return to_bytes(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))


def _packet(packets: Packets, row: int) -> _Packet:
    start, captured = int(packets.start[row]), int(packets.captured[row])
    data = packets.data[start : start + captured].tobytes()
    return int(packets.time_ns[row]), int(packets.original[row]), int(packets.link[row]), data


def add_reassembled(ranges: Iterable[Range], seen: Mapping[int, RangeScan]) -> list[Range]:
    """Return the ranges with what loose fragments make whole in them, and their clocks."""
    return _clocked(_with_segments(list(ranges), seen), seen)


def _clocked(ranges: Iterable[Range], seen: Mapping[int, RangeScan]) -> list[Range]:
    """Return the ranges with the latest times of segments before them."""
    out: list[Range] = []
    clock_ns = 0
    for each in ranges:
        out.append(replace(each, clock_ns=clock_ns))
        if not each.is_empty:
            clock_ns = max(clock_ns, seen[each.number].latest_ns)
        segments = reassembled_segments(each, lambda name: 0)
        if segments is not None:
            clock_ns = max(clock_ns, int(segments.time_ns.max()))
    return out


def _with_segments(ranges: list[Range], seen: Mapping[int, RangeScan]) -> list[Range]:
    rows = [
        (each, row)
        for each in ranges
        if not each.is_empty and seen[each.number].split_fragments
        for row in from_bytes(seen[each.number].split_fragments).to_pylist()
    ]
    if not rows:
        return ranges
    layers = Layers()
    segments = layers.segments(_window([row for _, row in rows]))
    homes = np.array([each.number for each, _ in rows])[segments.packet]
    numbers = np.array([each.first_packet + row["packet"] for each, row in rows], np.int64)
    segments.packet = numbers[segments.packet]
    for number in np.unique(homes).tolist():
        mine = select_rows(segments, np.flatnonzero(homes == number))
        ranges[number] = replace(
            ranges[number], reassembled=to_bytes(pack_shard(mine, layers.networks))
        )
    return ranges


def _window(rows: Sequence[Mapping[str, object]]) -> Packets:
    """Return packets as if they had been captured one behind the other."""
    data = [bytes(row["data"]) for row in rows]  # type: ignore[call-overload]
    captured = np.array([len(each) for each in data], np.int64)

    def column(name: str, kind: str) -> np.ndarray:
        return np.array([row[name] for row in rows], kind)

    return Packets(
        data=np.frombuffer(b"".join(data), np.uint8),
        first=0,
        time_ns=column("time_ns", "i8"),
        start=np.cumsum(captured) - captured,
        captured=captured,
        original=column("original", "i8"),
        link=column("link", "i4"),
        file=np.zeros(len(rows), np.int32),
    )


def reassembled_segments(each: Range, networks: Callable[[str], int]) -> Segments | None:
    """
    Return the segments that are made whole in a range; None where none are.

    Args:
        each: The range.
        networks: Gives the number of a network by its name.
    """
    if not each.reassembled:
        return None
    names: dict[str, int] = {}
    (segments,) = unpack_shards(from_bytes(each.reassembled), names)
    numbers = np.array([networks(name) for name in names], np.int32)
    segments.network = numbers[segments.network]
    return segments


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """Return a batch as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def from_bytes(data: bytes) -> pa.RecordBatch:
    """Return the batch that `to_bytes` was given."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()
