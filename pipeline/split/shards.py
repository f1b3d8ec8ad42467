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

from dissector.capture.columns import Bytes, Int64s, Segments
from pipeline.split import segment_packing as packing
from pipeline.split.segment_packing import EndpointTable
from pipeline.split.segment_rows import concatenate, select_rows

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
    }
)
"""
A shard. `part` is its destination; the shards of one part are read in the order of `range` and
`number`. `ends` and `rows` are tables of int64, with the columns of `segment_packing`.
"""

_LOW_32_BITS = (1 << 32) - 1


class ShardPacker:
    """Packs the segments of one range into shards."""

    def __init__(self, number: int, networks: list[str], shard_bytes: int = SHARD_BYTES) -> None:
        """Start a range with this number; `networks` are the names of its networks so far."""
        self._range = number
        self._networks = networks
        self._shard_bytes = shard_bytes
        self._endpoints = EndpointTable()
        self._waiting: dict[int, list[tuple[Int64s, Bytes]]] = {}
        self._bytes: dict[int, int] = {}
        self._sealed: dict[int, int] = {}
        self._ready: list[pa.RecordBatch] = []

    def add(self, segments: Segments, into: Int64s, sums: Int64s) -> None:
        """Add segments, as `KeySet.assign_parts` has divided them; their payload is copied."""
        rows, payload = self._endpoints.pack(segments, into, sums)
        ends = np.cumsum(sums, axis=0)
        for part in np.flatnonzero(sums[:, 0]).tolist():
            row_end, end = ends[part].tolist()
            row_start, start = (ends[part] - sums[part]).tolist()
            self._add(part, rows[row_start:row_end], payload[start:end])

    def _add(self, part: int, rows: Int64s, payload: Bytes) -> None:
        """Add the rows of one part; smaller ones are copied and buffered."""
        buffered = self._bytes.get(part, 0)
        ends = buffered + np.cumsum(rows[:, packing.LENGTHS] & _LOW_32_BITS)
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

    def _seal(self, part: int, rows: Int64s, payload: Bytes) -> None:
        """Make a shard of the buffered rows and these."""
        waiting = [*self._waiting.pop(part, ()), (rows, payload)]
        self._bytes[part] = 0
        number = self._sealed.get(part, 0)
        self._sealed[part] = number + 1
        rows = np.concatenate([each for each, _ in waiting])
        payload = np.concatenate([each for _, each in waiting])
        destination = part, self._range, number
        self._ready.append(_shard(destination, self._endpoints.rows, self._networks, rows, payload))


def pack_shard(segments: Segments, networks: list[str]) -> pa.RecordBatch:
    """
    Return segments, at least one, as one shard.

    `networks` are the names of their networks.
    """
    endpoints, count = EndpointTable(), len(segments)
    sums = np.array([[count, segments.captured.sum()]], np.int64)
    rows, payload = endpoints.pack(segments, np.zeros(count, np.int64), sums)
    return _shard((0, 0, 0), endpoints.rows, networks, rows, payload)


def _shard(
    destination: tuple[int, int, int],
    endpoints: Int64s,
    networks: list[str],
    rows: Int64s,
    payload: Bytes,
) -> pa.RecordBatch:
    """Return a shard, with its own tables of endpoint pairs and networks."""
    used, codes = _distinct(rows[:, packing.FLAGS] >> 8, len(endpoints))
    rows[:, packing.FLAGS] = codes << 8 | rows[:, packing.FLAGS] & 0xFF
    endpoints = endpoints[used]
    found, numbers = np.unique(endpoints[:, packing.NETWORK], return_inverse=True)
    endpoints[:, packing.NETWORK] = numbers
    names = [networks[each] for each in found.tolist()]
    values = [*destination, names, endpoints.tobytes(), rows.tobytes()]
    arrays = [pa.array([each], kind) for each, kind in zip(values, SCHEMA.types, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, _blob(payload)], schema=SCHEMA)


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
            np.frombuffer(ends, np.int64).reshape(-1, packing.ENDPOINT_COLUMNS),
            np.frombuffer(rows, np.int64).reshape(-1, packing.ROW_COLUMNS),
            np.frombuffer(payload, np.uint8),
            numbers,
        )


def _segments(ends: Int64s, rows: Int64s, payload: Bytes, networks: Any) -> Segments:
    of_row = ends[rows[:, packing.FLAGS] >> 8]
    captured = rows[:, packing.LENGTHS] & _LOW_32_BITS
    return Segments(
        data=payload,
        packet=rows[:, packing.PACKET],
        time_ns=rows[:, packing.TIME],
        network=networks[of_row[:, packing.NETWORK]],
        source=of_row[:, packing.SOURCE : packing.SOURCE + 2].view(np.uint64),
        target=of_row[:, packing.TARGET : packing.TARGET + 2].view(np.uint64),
        source_port=of_row[:, packing.SOURCE_PORT].astype(np.int32),
        target_port=of_row[:, packing.TARGET_PORT].astype(np.int32),
        seq=rows[:, packing.SEQ],
        ack=rows[:, packing.ACK],
        flags=(rows[:, packing.FLAGS] & 0xFF).astype(np.int32),
        start=np.cumsum(captured) - captured,
        length=rows[:, packing.LENGTHS] >> 32,
        captured=captured,
        clock_ns=rows[:, packing.CLOCK],
    )


def renumbered(shard: pa.RecordBatch, packets: int, clock_ns: int) -> pa.RecordBatch:
    """Return a shard with its packet numbers shifted, and its clock at least this."""
    rows = np.frombuffer(shard.column("rows")[0].as_buffer(), np.int64)
    rows = rows.reshape(-1, packing.ROW_COLUMNS).copy()
    rows[:, packing.PACKET] += packets
    rows[:, packing.CLOCK] = np.maximum(rows[:, packing.CLOCK], clock_ns)
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
