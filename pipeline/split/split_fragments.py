"""
IP datagrams with fragments in several ranges: they are few, and reassembled all together.

The index pass returns the fragments that were incomplete at the end of a range. The segments of the
datagrams they complete, in the order of the collection, go to the range of the last fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Packets, Segments, unique
from dissector.capture.packets.layers import Layers
from pipeline.split.byte_ranges import Range, RangeScan
from pipeline.split.connection_keys import ConnectionCounts, KeySet
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
    Reassembly of fragments that were incomplete at the end of their files, file after file.

    Each part gets all of them, and takes the segments of its own connections.
    """

    def __init__(self) -> None:
        self._layers = Layers()

    def reassemble(
        self, fragments: bytes | None, first_packet: int, part: int, parts: int
    ) -> tuple[Segments, list[str]] | None:
        """
        Return the segments of a part that the next file completes; None without any.

        Args:
            fragments: The file's fragments, serialised; None without one.
            first_packet: The number of its first packet.
            part: The part.
            parts: Number of parts.

        Returns:
            The segments, and the names of their networks by number.
        """
        if not fragments:
            return None
        rows = from_bytes(fragments).to_pylist()
        segments = self._layers.segments(_window(rows))
        numbers = np.array([first_packet + row["packet"] for row in rows], np.int64)
        segments.packet = numbers[segments.packet]
        counts = ConnectionCounts()
        counts.add(segments)
        into, _ = KeySet(counts.keys_and_traffic()[0]).assign_parts(segments, parts)
        rows_of_part = np.flatnonzero(into == part)
        return (
            (select_rows(segments, rows_of_part), self._layers.networks)
            if len(rows_of_part)
            else None
        )


class FragmentCollector:
    """Keeps the packets of incomplete datagrams while a range is read."""

    def __init__(self) -> None:
        self._packets: dict[int, _Packet] = {}

    def update(self, packets: Packets, incomplete: Sequence[int]) -> None:
        """Keep a window's incomplete packets; drop complete and abandoned ones."""
        self._packets = {
            number: self._packets.get(number) or _packet(packets, number - packets.first)
            for number in incomplete
        }

    def serialised(self) -> bytes:
        """Return the packets that are left, serialised; no bytes without any."""
        if not self._packets:
            return b""
        rows = [(number, *packet) for number, packet in self._packets.items()]
        columns = [
            pa.array(column, kind)
            for column, kind in zip(zip(*rows, strict=True), _SCHEMA.types, strict=True)
        ]
        return to_bytes(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))


def _packet(packets: Packets, row: int) -> _Packet:
    start, captured = int(packets.start[row]), int(packets.captured[row])
    data = packets.data[start : start + captured].tobytes()
    return int(packets.time_ns[row]), int(packets.original[row]), int(packets.link[row]), data


def add_reassembled(ranges: Iterable[Range], scans: Mapping[int, RangeScan]) -> list[Range]:
    """Return the ranges with the segments that their fragments complete, and with their clocks."""
    return _with_clocks(_with_segments(list(ranges), scans), scans)


def _with_clocks(ranges: Iterable[Range], scans: Mapping[int, RangeScan]) -> list[Range]:
    """Return the ranges with the latest times of segments before them."""
    clocked: list[Range] = []
    clock_ns = 0
    for byte_range in ranges:
        clocked.append(replace(byte_range, clock_ns=clock_ns))
        if not byte_range.is_empty:
            clock_ns = max(clock_ns, scans[byte_range.number].latest_ns)
        segments = reassembled_segments(byte_range, lambda name: 0)
        if segments is not None:
            clock_ns = max(clock_ns, int(segments.time_ns.max()))
    return clocked


def _with_segments(ranges: list[Range], scans: Mapping[int, RangeScan]) -> list[Range]:
    rows = [
        (each, row)
        for each in ranges
        if not each.is_empty and scans[each.number].split_fragments
        for row in from_bytes(scans[each.number].split_fragments).to_pylist()
    ]
    if not rows:
        return ranges
    layers = Layers(decode_as=ranges[0].decode_as)
    segments = layers.segments(_window([row for _, row in rows]))
    range_numbers = np.array([each.number for each, _ in rows])[segments.packet]
    numbers = np.array([each.first_packet + row["packet"] for each, row in rows], np.int64)
    segments.packet = numbers[segments.packet]
    for number in unique(range_numbers).tolist():
        own = select_rows(segments, np.flatnonzero(range_numbers == number))
        ranges[number] = replace(
            ranges[number], reassembled=to_bytes(pack_shard(own, layers.networks))
        )
    return ranges


def _window(rows: Sequence[Mapping[str, object]]) -> Packets:
    """Return packets as a window, as if they had been captured one after another."""
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


def reassembled_segments(byte_range: Range, networks: Callable[[str], int]) -> Segments | None:
    """
    Return the segments that a range's fragments complete; None without any.

    Args:
        byte_range: The range.
        networks: Returns the number of a network by its name.
    """
    if not byte_range.reassembled:
        return None
    names: dict[str, int] = {}
    (segments,) = unpack_shards(from_bytes(byte_range.reassembled), names)
    numbers = np.array([networks(name) for name in names], np.int32)
    segments.network = numbers[segments.network]
    return segments


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """Return a batch, serialised."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def from_bytes(data: bytes) -> pa.RecordBatch:
    """Return the batch that `to_bytes` serialised."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()
