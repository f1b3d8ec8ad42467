"""Segment sources of the engine: a range, all ranges of a collection, shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s, Packets, Segments
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.capture.packets.layers import Layers
from dissector.engine.reading.packet_files import FileNames
from dissector.engine.reading.segment_source import FileProblems
from pipeline.split.byte_ranges import Range
from pipeline.split.connection_keys import KeySet
from pipeline.split.range_reader import RangeReader
from pipeline.split.segment_rows import concatenate, select_rows
from pipeline.split.shards import ShardPacker, in_windows, unpack_shards
from pipeline.split.split_fragments import reassembled_segments


class RangeSource(FileNames):
    """
    The segments of connections that lie in one range; a `SegmentSource`.

    Attributes:
        packer: Receives the segments of connections across the range's borders.
    """

    def __init__(
        self, byte_range: Range, crossing: Int64s, parts: int, window_bytes: int = WINDOW_BYTES
    ) -> None:
        """Start; `crossing` are the keys that are in other ranges too, in order."""
        super().__init__()
        self._reader = RangeReader(byte_range, window_bytes)
        self._layers = Layers(byte_range.clock_ns, byte_range.decode_as)
        self._crossing = KeySet(crossing)
        self._parts = parts
        self._reassembled = reassembled_segments(byte_range, self._layers.network_number)
        self.add(byte_range.first_packet, byte_range.path)
        self.packets = 0
        self.bytes = 0
        self.file_bytes = 0
        self.begin_ns = 0
        self.longest_packet = 0
        self.networks = self._layers.networks
        self.passed_over = self._layers.passed_over
        self.unread_links = self._layers.unread_links
        self.packer = ShardPacker(byte_range.number, self.networks)

    @property
    def evicted(self) -> int:
        """Number of incomplete datagrams dropped for new ones."""
        return self._layers.evicted

    @property
    def unread(self) -> str:
        """As in `RangeReader`, after the range was read."""
        return self._reader.unread

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Read the range."""
        for packets in self._reader.windows():
            self.packets += len(packets)
            self.bytes += int(packets.captured.sum())
            clock_ns = self._layers.clock_ns
            segments = self._with_reassembled(self._layers.segments(packets), packets, clock_ns)
            yield self._keep_local(segments), packets.problems
            del segments
            del packets
        self._layers.finish()

    def _with_reassembled(self, segments: Segments, packets: Packets, clock_ns: int) -> Segments:
        """Return segments, including those completed by fragments of earlier ranges."""
        if self._reassembled is None:
            return segments
        number = self._reassembled.packet
        is_in_window = (number >= packets.first) & (number < packets.first + len(packets))
        if not is_in_window.any():
            return segments
        self._layers.clock_ns = clock_ns
        merged = concatenate(
            [segments, select_rows(self._reassembled, np.flatnonzero(is_in_window))]
        )
        return self._layers.with_clock(
            select_rows(merged, np.argsort(merged.packet, kind="stable"))
        )

    def _keep_local(self, segments: Segments) -> Segments:
        """Return the segments of local connections; pack the others."""
        into, sums = self._crossing.assign_parts(segments, self._parts)
        crossing_count = int(sums["segments"].sum())
        if not crossing_count:
            return segments
        self.packer.add(segments, into, sums)
        return select_rows(segments, np.flatnonzero(into < 0))


class CollectionSource(FileNames):
    """
    All segments of a collection, range after range; a `SegmentSource`.

    Attributes:
        evicted: As in `RangeSource`.
    """

    def __init__(self, ranges: Sequence[Range], window_bytes: int = WINDOW_BYTES) -> None:
        """Start; the ranges have their proven starts."""
        super().__init__()
        self._ranges = ranges
        self._window_bytes = window_bytes
        self._numbers = {"": 0}
        self.packets = 0
        self.bytes = 0
        self.file_bytes = 0
        self.begin_ns = 0
        self.longest_packet = 0
        self.evicted = 0
        self.networks: list[str] = [""]
        self.passed_over: dict[str, int] = {}
        self.unread_links: dict[int, int] = {}

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Read the ranges in order."""
        for each in self._ranges:
            source = RangeSource(each, np.zeros(0, np.int64), 1, self._window_bytes)
            for segments, problems in source.windows():
                if source.packets:
                    self.add(each.first_packet, each.path)
                self.packets = each.first_packet + source.packets
                numbers = [
                    self._numbers.setdefault(each, len(self._numbers)) for each in source.networks
                ]
                self.networks = list(self._numbers)
                segments.network = np.array(numbers, np.int32)[segments.network]
                yield segments, problems
                del segments
            self.evicted += source.evicted


class ShardSource(FileNames):
    """
    The segments of shards; a `SegmentSource`.

    Attributes:
        evicted: As in `RangeSource`: datagrams of shards are complete.
    """

    evicted = 0

    def __init__(self, names: FileNames) -> None:
        """Start; `names` are the files of the whole collection."""
        super().__init__()
        self.starts, self.names = names.starts, names.names
        self.packets = 0
        self.bytes = 0
        self.file_bytes = 0
        self.begin_ns = 0
        self.longest_packet = 0
        self.networks: list[str] = [""]
        self.passed_over: dict[str, int] = {}
        self.unread_links: dict[int, int] = {}
        self._numbers = {"": 0}

    @property
    def state(self) -> tuple[dict[str, int], int, int]:
        """The state between two calls of `segments_of`."""
        return self._numbers, self.packets, self.bytes

    @state.setter
    def state(self, state: tuple[dict[str, int], int, int]) -> None:
        self._numbers, self.packets, self.bytes = state
        self.networks = list(self._numbers)

    def segments_of(
        self, shards: Iterable[pa.RecordBatch], window_bytes: int = WINDOW_BYTES
    ) -> Iterator[tuple[Segments, FileProblems]]:
        """Yield the segments of shards, which must be in order."""
        batches = (each for batch in shards for each in unpack_shards(batch, self._numbers))
        for segments in in_windows(batches, window_bytes):
            self.networks += list(self._numbers)[len(self.networks) :]
            self.packets += len(segments)
            self.bytes += len(segments.data)
            yield segments, []
            del segments

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Yield nothing: shards are passed to `segments_of`."""
        return iter(())
