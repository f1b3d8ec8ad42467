"""What the engine is fed with: a range without what crosses its borders, and parcels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s, Packets, Segments
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.capture.packets.layers import Layers
from dissector.engine.reading.segment_source import FileNames, FileProblems
from pipeline.split.byte_ranges import Range
from pipeline.split.connection_keys import KeySet
from pipeline.split.range_reader import RangeReader
from pipeline.split.segment_rows import concatenate, select_rows
from pipeline.split.shards import ShardPacker, in_windows, unpack_shards
from pipeline.split.split_fragments import reassembled_segments


class RangeSource(FileNames):
    """
    Gives the segments of connections that lie in one range; a `Feed`.

    Attributes:
        packer: Gets the segments of those that cross its borders.
    """

    def __init__(
        self, each: Range, crossing: Int64s, parts: int, window_bytes: int = WINDOW_BYTES
    ) -> None:
        """Begin; `crossing` are the keys that are in other ranges too, in order."""
        super().__init__()
        self._reader = RangeReader(each, window_bytes)
        self._layers = Layers(each.clock_ns)
        self._crossing = KeySet(crossing)
        self._parts = parts
        self._whole = reassembled_segments(each, self._layers.network_number)
        self.add(each.first_packet, each.path)
        self.packets = 0
        self.bytes = 0
        self.file_bytes = 0
        self.begin_ns = 0
        self.networks = self._layers.networks
        self.passed_over = self._layers.passed_over
        self.packer = ShardPacker(each.number, self.networks)

    @property
    def crowded(self) -> int:
        """How often an incomplete datagram was given up for a new one."""
        return self._layers.evicted

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Read the range."""
        for packets in self._reader.windows():
            self.packets += len(packets)
            self.bytes += int(packets.captured.sum())
            clock_ns = self._layers.clock_ns
            segments = self._with_whole(self._layers.segments(packets), packets, clock_ns)
            yield self._stay(segments), packets.problems
            del segments
            del packets
        self._layers.finish()

    def _with_whole(self, segments: Segments, packets: Packets, clock_ns: int) -> Segments:
        """Return segments with those that fragments from before the range make whole."""
        if self._whole is None:
            return segments
        number = self._whole.packet
        here = (number >= packets.first) & (number < packets.first + len(packets))
        if not here.any():
            return segments
        self._layers.clock_ns = clock_ns
        both = concatenate([segments, select_rows(self._whole, np.flatnonzero(here))])
        return self._layers.with_clock(select_rows(both, np.argsort(both.packet, kind="stable")))

    def _stay(self, segments: Segments) -> Segments:
        """Return the segments that stay, and send away the others."""
        into, sums = self._crossing.assign_parts(segments, self._parts)
        away = int(sums[:, 0].sum())
        if not away:
            return segments
        self.packer.add(segments, into, sums)
        return select_rows(segments, np.flatnonzero(into < 0))


class ShardSource(FileNames):
    """
    Gives the segments of parcels; a `Feed`.

    Attributes:
        crowded: As of a `RangeSource`: here are no datagrams.
    """

    crowded = 0

    def __init__(self, names: FileNames) -> None:
        """Begin; `names` tell the files of the whole collection."""
        super().__init__()
        self.starts, self.names = names.starts, names.names
        self.packets = 0
        self.bytes = 0
        self.file_bytes = 0
        self.begin_ns = 0
        self.networks: list[str] = [""]
        self.passed_over: dict[str, int] = {}
        self._numbers = {"": 0}

    @property
    def state(self) -> tuple[dict[str, int], int, int]:
        """What is kept from parcel to parcel."""
        return self._numbers, self.packets, self.bytes

    @state.setter
    def state(self, state: tuple[dict[str, int], int, int]) -> None:
        self._numbers, self.packets, self.bytes = state
        self.networks = list(self._numbers)

    def segments_of(
        self, parcels: Iterable[pa.RecordBatch], window_bytes: int = WINDOW_BYTES
    ) -> Iterator[tuple[Segments, FileProblems]]:
        """Yield the segments of parcels, which come in their order."""
        pieces = (each for batch in parcels for each in unpack_shards(batch, self._numbers))
        for segments in in_windows(pieces, window_bytes):
            self.networks += list(self._numbers)[len(self.networks) :]
            self.packets += len(segments)
            self.bytes += len(segments.data)
            yield segments, []
            del segments

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Give nothing by itself: it is given parcels."""
        return iter(())
