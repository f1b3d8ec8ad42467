"""
Parcels: the segments of connections that cross ranges, packed to travel to where all of one meet.

What travels is what the headers told, in some fifty bytes, and the payload: no header is read
twice, and datagrams that came in fragments travel whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Bytes, Int64s, Segments
from pipeline.split import segment_packing as of
from pipeline.split.segment_packing import EndpointTable
from pipeline.split.segment_rows import concatenate, select_rows

SHARD_BYTES = 1 << 20
"""About how much payload a parcel holds."""

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
A parcel. `part` is where it goes; those of one part are taken in the order of `range` and `number`.
`ends` and `rows` are tables of int64, with the columns of `packing`.
"""

_LOW = (1 << 32) - 1


class ShardPacker:
    """Packs the segments of one range."""

    def __init__(self, number: int, networks: list[str], parcel_bytes: int = SHARD_BYTES) -> None:
        """Begin a range with this number; `networks` are the names of its networks so far."""
        self._range = number
        self._networks = networks
        self._parcel_bytes = parcel_bytes
        self._ends = EndpointTable()
        self._waiting: dict[int, list[tuple[Int64s, Bytes]]] = {}
        self._bytes: dict[int, int] = {}
        self._sent: dict[int, int] = {}
        self._ready: list[pa.RecordBatch] = []

    def add(self, segments: Segments, into: Int64s, sums: Int64s) -> None:
        """Take segments, as `Chosen.parts` has divided them; their payload is copied."""
        rows, payload = self._ends.pack(segments, into, sums)
        ends = np.cumsum(sums, axis=0)
        for part in np.flatnonzero(sums[:, 0]).tolist():
            row_end, end = ends[part].tolist()
            begin, at = (ends[part] - sums[part]).tolist()
            self._add(part, rows[begin:row_end], payload[at:end])

    def _add(self, part: int, rows: Int64s, payload: Bytes) -> None:
        """Take the rows of one part; those that fill no parcel are copied, and wait."""
        held = self._bytes.get(part, 0)
        ends = held + np.cumsum(rows[:, of.LENGTHS] & _LOW)
        cuts = np.flatnonzero(np.diff(ends // self._parcel_bytes, prepend=0)) + 1
        places = [0, *(ends[cuts - 1] - held).tolist(), len(payload)]
        *full, rest = zip(np.split(rows, cuts), pairwise(places), strict=True)
        for piece, (at, end) in full:
            self._send(part, piece, payload[at:end])
        piece, (at, end) = rest
        if len(piece):
            self._waiting.setdefault(part, []).append((piece.copy(), payload[at:end].copy()))
            self._bytes[part] = self._bytes.get(part, 0) + end - at

    def full_shards(self) -> Iterator[pa.RecordBatch]:
        """Yield the parcels that are full."""
        ready, self._ready = self._ready, []
        yield from ready

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the parcels that are left."""
        for part in sorted(self._waiting):
            self._send(part, *self._waiting[part].pop())
        yield from self.full_shards()

    def _send(self, part: int, rows: Int64s, payload: Bytes) -> None:
        """Make a parcel of what waits and of these rows."""
        waiting = [*self._waiting.pop(part, ()), (rows, payload)]
        self._bytes[part] = 0
        number = self._sent.get(part, 0)
        self._sent[part] = number + 1
        rows = np.concatenate([each for each, _ in waiting])
        payload = np.concatenate([each for _, each in waiting])
        place = part, self._range, number
        self._ready.append(_parcel(place, self._ends.rows, self._networks, rows, payload))


def pack_shard(segments: Segments, networks: list[str]) -> pa.RecordBatch:
    """Return segments, which are not none, as one parcel; `networks` are the names of theirs."""
    ends, count = EndpointTable(), len(segments)
    sums = np.array([[count, segments.captured.sum()]], np.int64)
    rows, payload = ends.pack(segments, np.zeros(count, np.int64), sums)
    return _parcel((0, 0, 0), ends.rows, networks, rows, payload)


def _parcel(
    place: tuple[int, int, int], ends: Int64s, networks: list[str], rows: Int64s, payload: Bytes
) -> pa.RecordBatch:
    """Return a parcel, which has its own ends and networks."""
    used, codes = _distinct(rows[:, of.FLAGS] >> 8, len(ends))
    rows[:, of.FLAGS] = codes << 8 | rows[:, of.FLAGS] & 0xFF
    ends = ends[used]
    found, numbers = np.unique(ends[:, of.NETWORK], return_inverse=True)
    ends[:, of.NETWORK] = numbers
    names = [networks[each] for each in found.tolist()]
    plain = [*place, names, ends.tobytes(), rows.tobytes()]
    arrays = [pa.array([each], kind) for each, kind in zip(plain, SCHEMA.types, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, _blob(payload)], schema=SCHEMA)


def _distinct(numbers: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """Return which numbers there are, all below a count, and the place of each among them."""
    there = np.zeros(count, np.bool_)
    there[numbers] = True
    places = np.cumsum(there) - 1
    return np.flatnonzero(there), places[numbers]


def _blob(data: Bytes) -> pa.Array:
    """Return bytes as a column of one row, which are not copied."""
    bounds = np.array([0, len(data)], np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def unpack_shards(parcels: pa.RecordBatch, networks: dict[str, int]) -> Iterator[Segments]:
    """
    Yield the segments of parcels.

    Args:
        parcels: Rows of `SCHEMA`.
        networks: The numbers of networks by their names; new ones are added.
    """
    for row in range(parcels.num_rows):
        names = parcels.column("networks")[row].as_py()
        numbers = np.array([networks.setdefault(name, len(networks)) for name in names], np.int32)
        ends, rows, payload = (
            parcels.column(name)[row].as_buffer() for name in ("ends", "rows", "payload")
        )
        yield _segments(
            np.frombuffer(ends, np.int64).reshape(-1, of.ENDPOINT_COLUMNS),
            np.frombuffer(rows, np.int64).reshape(-1, of.ROW_COLUMNS),
            np.frombuffer(payload, np.uint8),
            numbers,
        )


def _segments(ends: Int64s, rows: Int64s, payload: Bytes, networks: Any) -> Segments:
    of_row = ends[rows[:, of.FLAGS] >> 8]
    captured = rows[:, of.LENGTHS] & _LOW
    return Segments(
        data=payload,
        packet=rows[:, of.PACKET],
        time_ns=rows[:, of.TIME],
        network=networks[of_row[:, of.NETWORK]],
        source=of_row[:, of.SOURCE : of.SOURCE + 2].view(np.uint64),
        target=of_row[:, of.TARGET : of.TARGET + 2].view(np.uint64),
        source_port=of_row[:, of.SOURCE_PORT].astype(np.int32),
        target_port=of_row[:, of.TARGET_PORT].astype(np.int32),
        seq=rows[:, of.SEQ],
        ack=rows[:, of.ACK],
        flags=(rows[:, of.FLAGS] & 0xFF).astype(np.int32),
        start=np.cumsum(captured) - captured,
        length=rows[:, of.LENGTHS] >> 32,
        captured=captured,
        clock_ns=rows[:, of.CLOCK],
    )


def renumbered(parcel: pa.RecordBatch, packets: int, clock_ns: int) -> pa.RecordBatch:
    """Return a parcel whose packets have so many before them, and segments until then."""
    rows = np.frombuffer(parcel.column("rows")[0].as_buffer(), np.int64)
    rows = rows.reshape(-1, of.ROW_COLUMNS).copy()
    rows[:, of.PACKET] += packets
    rows[:, of.CLOCK] = np.maximum(rows[:, of.CLOCK], clock_ns)
    at = parcel.schema.get_field_index("rows")
    return parcel.set_column(at, parcel.schema.field(at), pa.array([rows.tobytes()], pa.binary()))


def merge_segments(
    parcels: Iterable[pa.RecordBatch], more: tuple[Segments, list[str]] | None
) -> Iterator[pa.RecordBatch]:
    """
    Yield parcels with further segments at the places of their packets.

    Args:
        parcels: In the order of their packets.
        more: Few segments, likewise, and the names of their networks by number.
    """
    if more is None:
        yield from parcels
        return
    waiting, names = more
    numbers = {name: number for number, name in enumerate(names)}
    for parcel in parcels:
        (segments,) = unpack_shards(parcel, numbers)
        count = int(np.searchsorted(waiting.packet, segments.packet[-1]))
        if count:
            both = concatenate([segments, select_rows(waiting, np.arange(count))])
            both = select_rows(both, np.argsort(both.packet, kind="stable"))
            both.clock_ns = np.maximum.accumulate(both.clock_ns)
            parcel = pack_shard(both, list(numbers))
            waiting = select_rows(waiting, np.arange(count, len(waiting)))
        yield parcel
    if len(waiting):
        yield pack_shard(waiting, names)


def in_windows(pieces: Iterable[Segments], window_bytes: int) -> Iterator[Segments]:
    """Yield segments in windows of about so many bytes."""
    waiting: list[Segments] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece.data)
        if held >= window_bytes:
            yield concatenate(waiting)
            waiting, held = [], 0
    if waiting:
        yield concatenate(waiting)
