"""Segment sources of the engine: a range, all ranges of a collection, shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s, Packets, Segments
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.capture.formats.conversions import Converted
from dissector.capture.packets.layers import Layers
from dissector.engine.exchanges.log_columns import LogColumns
from dissector.engine.reading.packet_files import FileNames
from dissector.engine.reading.segment_source import FileProblems
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import Ints
from pipeline.split.byte_ranges import Range
from pipeline.split.connection_keys import KeySet
from pipeline.split.segment_rows import concatenate, select_rows
from pipeline.split.shards import ShardPacker, files_in, in_windows, unpack_shards
from pipeline.split.slice_files import SliceFiles
from pipeline.split.slice_reader import reader_of
from pipeline.split.split_fragments import reassembled_segments

_Key = TypeVar("_Key", str, int)


class RangeSource(FileNames):
    """
    The segments of connections that lie in one range, or of the others; a `SegmentSource`.

    Attributes:
        packer: Receives the segments of connections across the range's borders, if requested.
        found_logs: The request log by its name, from the first window on.
    """

    def __init__(
        self,
        byte_range: Range,
        crossing: Int64s,
        parts: int,
        window_bytes: int = WINDOW_BYTES,
        *,
        files: FileNames | None = None,
        yields_crossing: bool = False,
    ) -> None:
        """
        Start.

        Args:
            byte_range: The range.
            crossing: Keys of the connections that are in other ranges too, in order.
            parts: Number of parts for these connections; 0: they are not packed.
            window_bytes: About how much of the range is in memory at a time.
            files: Receives the file of each packet too.
            yields_crossing: Whether it yields these connections in place of the others.
        """
        super().__init__(files)
        self._reader = reader_of(byte_range, window_bytes)
        self.found_logs = self._reader.logs
        self.logs = LogColumns(self, self.found_logs)
        self._paths = byte_range.paths
        self._layers = Layers(byte_range.clock_ns, byte_range.decode_as)
        self._crossing = KeySet(crossing)
        self._parts = parts
        self._yields_crossing = yields_crossing
        self._reassembled = reassembled_segments(byte_range, self._layers.network_number)
        self.packets = 0
        self.bytes = 0
        self.file_bytes = 0
        self.begin_ns = 0
        self.longest_packet = 0
        self.networks = self._layers.networks
        self.passed_over = self._layers.passed_over
        self.unread_links = self._layers.unread_links
        of_slice = None if byte_range.time_slice is None else FileNames(self)
        self.packer = ShardPacker(byte_range.number, self.networks, files=of_slice)

    @property
    def evicted(self) -> int:
        """Number of incomplete datagrams dropped for new ones."""
        return self._layers.evicted

    @property
    def unread(self) -> dict[str, str]:
        """Files of which no packet could be read, with the reasons, after the range was read."""
        return self._reader.unread_files

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Read the range."""
        for packets in self._reader.windows():
            self.packets += len(packets)
            self.bytes += int(packets.captured.sum())
            self.add_window(packets, self._paths)
            clock_ns = self._layers.clock_ns
            segments = self._with_reassembled(self._layers.segments(packets), packets, clock_ns)
            yield self._chosen(segments), self._problems_of(packets)
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

    def _chosen(self, segments: Segments) -> Segments:
        """Return the segments of local connections, and pack the others; or return the others."""
        into, sums = self._crossing.assign_parts(segments, max(self._parts, 1))
        crossing_count = int(sums["segments"].sum())
        if crossing_count == (len(segments) if self._yields_crossing else 0):
            return segments
        if self._yields_crossing:
            return select_rows(segments, np.flatnonzero(into >= 0))
        if self._parts:
            self.packer.add(segments, into, sums)
        return select_rows(segments, np.flatnonzero(into < 0))

    def _problems_of(self, packets: Packets) -> FileProblems:
        """Return the problems of a window; those of the captures are in the rows of the others."""
        is_known = self._yields_crossing and not self._reader.scan.problem
        return [] if is_known else packets.problems


class CollectionSource(FileNames):
    """
    All segments of ranges, one after the other, or those of some connections; a `SegmentSource`.

    Attributes:
        evicted: As in `RangeSource`.
    """

    def __init__(
        self,
        ranges: Sequence[Range],
        window_bytes: int = WINDOW_BYTES,
        crossing: Int64s | None = None,
    ) -> None:
        """
        Start.

        Args:
            ranges: With their proven starts and first packets.
            window_bytes: About how much of a range is in memory at a time.
            crossing: Keys of the connections to yield, in order; None: all.
        """
        super().__init__()
        self._ranges = ranges
        self._crossing = crossing
        self._window_bytes = window_bytes
        self._numbers = {"": 0}
        self._found_logs: dict[str, Converted] = {}
        self.logs = LogColumns(self, self._found_logs)
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
            source = self._source_of(each)
            for segments, problems in source.windows():
                self.packets = each.first_packet + source.packets
                self._found_logs |= source.found_logs
                numbers = [
                    self._numbers.setdefault(each, len(self._numbers)) for each in source.networks
                ]
                self.networks = list(self._numbers)
                segments.network = np.array(numbers, np.int32)[segments.network]
                yield segments, problems
                del segments
            if self._crossing is None:
                self.evicted += source.evicted
            self.bytes += source.bytes
            self.longest_packet = max(self.longest_packet, source.longest_packet)
            _add_counts(self.passed_over, source.passed_over)
            _add_counts(self.unread_links, source.unread_links)

    def _source_of(self, byte_range: Range) -> RangeSource:
        keys = np.zeros(0, np.int64) if self._crossing is None else self._crossing
        return RangeSource(
            *(byte_range, keys, 0, self._window_bytes),
            files=self,
            yields_crossing=self._crossing is not None,
        )


def _add_counts(into: dict[_Key, int], more: Mapping[_Key, int]) -> None:
    for key, count in more.items():
        into[key] = into.get(key, 0) + count


class ShardSource(FileNames):
    """
    The segments of shards; a `SegmentSource`.

    Attributes:
        evicted: As in `RangeSource`: datagrams of shards are complete.
        found_logs: The request logs by their names; the caller adds them.
    """

    evicted = 0

    def __init__(self, names: FileNames) -> None:
        """Start; `names` are the files of the whole collection, but those of slices."""
        super().__init__(names)
        self.found_logs: dict[str, Any] = {}
        self.logs = LogColumns(self, self.found_logs)
        self._of_slices = SliceFiles()
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
        for segments in in_windows(self._unpacked(shards), window_bytes):
            self.networks += list(self._numbers)[len(self.networks) :]
            self.packets += len(segments)
            self.bytes += len(segments.data)
            yield segments, []
            del segments

    def _unpacked(self, shards: Iterable[pa.RecordBatch]) -> Iterator[Segments]:
        for shard in shards:
            for row, segments in enumerate(unpack_shards(shard, self._numbers)):
                self._of_slices.add(segments.packet, *files_in(shard, row))
                yield segments

    def file_of(self, packet: int) -> str:
        """Return the name of the file that holds a packet."""
        files = self.files_of(np.array([packet], np.int64))
        return str(files.value(0))

    def files_of(self, packets: Ints) -> Coded:
        """Return the names of the files that hold packets."""
        return self._of_slices.put_into(super().files_of(packets), packets)

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Yield nothing: shards are passed to `segments_of`."""
        return iter(())
