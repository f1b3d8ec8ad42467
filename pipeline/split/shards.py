"""
Shards: the segments of connections that cross ranges, packed for the dissecting task.

A shard holds the fields of packet headers, about fifty bytes per segment, and the payload: no
header is read twice, and reassembled datagrams travel whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dissector.capture.columns import FLAG_BITS, Bytes, Int64s, Segments
from dissector.engine.reading.packet_files import FileNames
from dissector.kernel.named_rows import RowArray, dtype_of
from pipeline.split.connection_keys import Traffic
from pipeline.split.segment_packing import EndpointPair, EndpointTable, PackedSegment
from pipeline.split.segment_rows import concatenate, select_rows

_FLAGS = (1 << FLAG_BITS) - 1

SHARD_BYTES = 1 << 20
"""Approximate payload of a shard."""

SCHEMA = pa.schema(
    {
        "part": pa.int32(),
        "range": pa.int32(),
        "number": pa.int32(),
        "networks": pa.list_(pa.string()),
        "ends": pa.binary(),
        "rows": pa.binary(),
        "payload": pa.binary(),
        "files": pa.list_(pa.string()),
        "of_file": pa.binary(),
    }
)
"""
A shard. `part` is its destination; the shards of one part are read in the order of `range` and
`number`. `ends` and `rows` are tables, of `EndpointPair` and `PackedSegment`. Shards of slices
have, for each row, the index of its file in `files`, as uint16.
"""

_LOW_32_BITS = (1 << 32) - 1


class ShardPacker:
    """Packs the segments of one range into shards."""

    def __init__(
        self,
        number: int,
        networks: list[str],
        shard_bytes: int = SHARD_BYTES,
        *,
        files: FileNames | None = None,
    ) -> None:
        """
        Start.

        Args:
            number: Number of the range.
            networks: The names of its networks so far.
            shard_bytes: Approximate payload of a shard.
            files: Of a slice, the file of each packet so far.
        """
        self._range = number
        self._networks = networks
        self._files = files
        self._shard_bytes = shard_bytes
        self._endpoints = EndpointTable()
        self._waiting: dict[int, list[tuple[RowArray, Bytes]]] = {}
        self._bytes: dict[int, int] = {}
        self._sealed: dict[int, int] = {}
        self._ready: list[pa.RecordBatch] = []

    def add(self, segments: Segments, into: Int64s, sums: RowArray) -> None:
        """Add segments, as `KeySet.assign_parts` has divided them; their payload is copied."""
        rows, payload = self._endpoints.pack(segments, into, sums)
        row_end, end = np.cumsum(sums["segments"]), np.cumsum(sums["bytes"])
        for part in np.flatnonzero(sums["segments"]).tolist():
            of_part = slice(row_end[part] - sums["segments"][part], row_end[part])
            bytes_of_part = slice(end[part] - sums["bytes"][part], end[part])
            self._add(part, rows[of_part], payload[bytes_of_part])

    def _add(self, part: int, rows: RowArray, payload: Bytes) -> None:
        """Add the rows of one part; smaller ones are copied and buffered."""
        buffered = self._bytes.get(part, 0)
        ends = buffered + np.cumsum(rows["lengths"] & _LOW_32_BITS)
        cuts = np.flatnonzero(np.diff(ends // self._shard_bytes, prepend=0)) + 1
        bounds = [0, *(ends[cuts - 1] - buffered).tolist(), len(payload)]
        *full, remainder = zip(np.split(rows, cuts), pairwise(bounds), strict=True)
        for shard_rows, (at, end) in full:
            self._seal(part, shard_rows, payload[at:end])
        shard_rows, (at, end) = remainder
        if len(shard_rows):
            self._waiting.setdefault(part, []).append((shard_rows.copy(), payload[at:end].copy()))
            self._bytes[part] = self._bytes.get(part, 0) + end - at

    def full_shards(self) -> Iterator[pa.RecordBatch]:
        """Yield the shards that are full."""
        ready, self._ready = self._ready, []
        yield from ready

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the shards that are left."""
        for part in sorted(self._waiting):
            self._seal(part, *self._waiting[part].pop())
        yield from self.full_shards()

    def _seal(self, part: int, rows: RowArray, payload: Bytes) -> None:
        """Make a shard of the buffered rows and these."""
        waiting = [*self._waiting.pop(part, ()), (rows, payload)]
        self._bytes[part] = 0
        number = self._sealed.get(part, 0)
        self._sealed[part] = number + 1
        rows = np.concatenate([each for each, _ in waiting])
        payload = np.concatenate([each for _, each in waiting])
        destination = part, self._range, number
        ends = self._endpoints.rows
        self._ready.append(_shard(destination, ends, self._networks, rows, payload, self._files))


def pack_shard(segments: Segments, networks: list[str]) -> pa.RecordBatch:
    """
    Return segments, at least one, as one shard.

    `networks` are the names of their networks.
    """
    endpoints, count = EndpointTable(), len(segments)
    sums = np.array([(count, segments.captured.sum())], dtype_of(Traffic))
    rows, payload = endpoints.pack(segments, np.zeros(count, np.int64), sums)
    return _shard((0, 0, 0), endpoints.rows, networks, rows, payload)


def _shard(
    destination: tuple[int, int, int],
    endpoints: RowArray,
    networks: list[str],
    rows: RowArray,
    payload: Bytes,
    files: FileNames | None = None,
) -> pa.RecordBatch:
    """Return a shard, with its own tables of endpoint pairs and networks."""
    used, codes = _distinct(rows["flags"] >> FLAG_BITS, len(endpoints))
    rows["flags"] = codes << FLAG_BITS | rows["flags"] & _FLAGS
    endpoints = endpoints[used]
    found, numbers = np.unique(endpoints["network"], return_inverse=True)
    endpoints["network"] = numbers
    names = [networks[each] for each in found.tolist()]
    values = [*destination, names, endpoints.tobytes(), rows.tobytes()]
    arrays = [pa.array([each], kind) for each, kind in zip(values, SCHEMA.types, strict=False)]
    of_rows = _files_of(rows, files)
    more = [pa.array([each], kind) for each, kind in zip(of_rows, SCHEMA.types[-2:], strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, _blob(payload), *more], schema=SCHEMA)


def _files_of(rows: RowArray, files: FileNames | None) -> tuple[list[str], bytes]:
    """Return the files of rows, and the index of each row among them."""
    if files is None:
        return [], b""
    coded = files.files_of(rows["packet"])
    used, codes = np.unique(coded.codes, return_inverse=True)
    return [coded.values[each] for each in used.tolist()], codes.astype(np.uint16).tobytes()


def files_in(shards: pa.RecordBatch, row: int) -> tuple[list[str], NDArray[np.uint16]]:
    """Return the files of a shard of a slice, and the index of each of its segments in these."""
    names: list[str] = shards.column("files")[row].as_py()
    return names, np.frombuffer(shards.column("of_file")[row].as_buffer(), np.uint16)


def _distinct(numbers: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """Return the distinct numbers, all below `count`, and the index of each number among them."""
    present = np.zeros(count, np.bool_)
    present[numbers] = True
    indexes = np.cumsum(present) - 1
    return np.flatnonzero(present), indexes[numbers]


def _blob(data: Bytes) -> pa.Array:
    """Return bytes as a binary column of one row, without a copy."""
    bounds = np.array([0, len(data)], np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def unpack_shards(shards: pa.RecordBatch, networks: dict[str, int]) -> Iterator[Segments]:
    """
    Yield the segments of shards.

    Args:
        shards: Rows of `SCHEMA`.
        networks: The numbers of networks by their names; new ones are added.
    """
    for row in range(shards.num_rows):
        names = shards.column("networks")[row].as_py()
        numbers = np.array([networks.setdefault(name, len(networks)) for name in names], np.int32)
        ends, rows, payload = (
            shards.column(name)[row].as_buffer() for name in ("ends", "rows", "payload")
        )
        yield _segments(
            np.frombuffer(ends, dtype_of(EndpointPair)),
            np.frombuffer(rows, dtype_of(PackedSegment)),
            np.frombuffer(payload, np.uint8),
            numbers,
        )


def _segments(ends: RowArray, rows: RowArray, payload: Bytes, networks: Any) -> Segments:
    of_row = ends[rows["flags"] >> FLAG_BITS]
    captured = rows["lengths"] & _LOW_32_BITS
    return Segments(
        data=payload,
        packet=rows["packet"],
        time_ns=rows["time_ns"],
        network=networks[of_row["network"]],
        source=of_row["source"].view(np.uint64),
        target=of_row["target"].view(np.uint64),
        source_port=of_row["source_port"].astype(np.int32),
        target_port=of_row["target_port"].astype(np.int32),
        seq=rows["seq"],
        ack=rows["ack"],
        flags=(rows["flags"] & _FLAGS).astype(np.int32),
        start=np.cumsum(captured) - captured,
        length=rows["lengths"] >> 32,
        captured=captured,
        clock_ns=rows["clock_ns"],
    )


def renumbered(shard: pa.RecordBatch, packets: int, clock_ns: int) -> pa.RecordBatch:
    """Return a shard with its packet numbers shifted, and its clock at least this."""
    rows = np.frombuffer(shard.column("rows")[0].as_buffer(), dtype_of(PackedSegment)).copy()
    rows["packet"] += packets
    rows["clock_ns"] = np.maximum(rows["clock_ns"], clock_ns)
    at = shard.schema.get_field_index("rows")
    return shard.set_column(at, shard.schema.field(at), pa.array([rows.tobytes()], pa.binary()))


def merge_segments(
    shards: Iterable[pa.RecordBatch], more: tuple[Segments, list[str]] | None
) -> Iterator[pa.RecordBatch]:
    """
    Yield shards with further segments merged in by packet number.

    Args:
        shards: In the order of their packets.
        more: A few segments with their payload, and the names of their networks by number.
    """
    if more is None:
        yield from shards
        return
    waiting, names = more
    numbers = {name: number for number, name in enumerate(names)}
    for shard in shards:
        (segments,) = unpack_shards(shard, numbers)
        count = int(np.searchsorted(waiting.packet, segments.packet[-1]))
        if count:
            merged = concatenate([segments, select_rows(waiting, np.arange(count))])
            merged = select_rows(merged, np.argsort(merged.packet, kind="stable"))
            merged.clock_ns = np.maximum.accumulate(merged.clock_ns)
            shard = pack_shard(merged, list(numbers))
            waiting = select_rows(waiting, np.arange(count, len(waiting)))
        yield shard
    if len(waiting):
        yield pack_shard(waiting, names)


def in_windows(batches: Iterable[Segments], window_bytes: int) -> Iterator[Segments]:
    """Yield segments in windows of about this many bytes."""
    waiting: list[Segments] = []
    waiting_bytes = 0
    for segments in batches:
        waiting.append(segments)
        waiting_bytes += len(segments.data)
        if waiting_bytes >= window_bytes:
            yield concatenate(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield concatenate(waiting)
