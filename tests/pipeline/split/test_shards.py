"""Shards are packed and unpacked without change."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dissector.capture.columns import Segments
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.packets.layers import Layers
from dissector.kernel.named_rows import dtype_of
from pipeline.split.connection_keys import ConnectionCounts, KeySet, Traffic
from pipeline.split.segment_packing import EndpointTable
from pipeline.split.segment_rows import concatenate, select_rows
from pipeline.split.shards import ShardPacker, in_windows, pack_shard, unpack_shards
from tests.pipeline.split_captures import imperfect_packets
from tests.tcp_captures import write


def rows_of(segments: Segments, networks: list[str]) -> list[tuple[Any, ...]]:
    """Return segments row by row, each with its payload."""
    names = [
        each.name for each in fields(Segments) if each.name not in ("data", "start", "is_live")
    ]
    columns = [getattr(segments, name).tolist() for name in names]
    columns[names.index("network")] = [networks[number] for number in segments.network]
    bounds = zip(segments.start.tolist(), segments.captured.tolist(), strict=True)
    payload = [segments.data[at : at + count].tobytes() for at, count in bounds]
    return [tuple(map(repr, row)) for row in zip(*columns, payload, strict=True)]


def captured(tmp_path: Path, window_bytes: int) -> tuple[Layers, list[Segments]]:
    layers = Layers()
    windows = read_packets(
        [write(tmp_path / "a.pcap", imperfect_packets(3))], window_bytes=window_bytes
    )
    return layers, [layers.segments(window) for window in windows]


@pytest.mark.parametrize("parcel_bytes", [1, 300, 1 << 20])
@pytest.mark.parametrize("window_bytes", [500, 1 << 20])
def test_packed_segments_are_unpacked_unchanged(
    parcel_bytes: int, window_bytes: int, tmp_path: Path
) -> None:
    layers, windows = captured(tmp_path, window_bytes)
    tally = ConnectionCounts()
    for each in windows:
        tally.add(each)
    keys = KeySet(tally.keys_and_traffic()[0][::2])
    packing = ShardPacker(7, layers.networks, parcel_bytes)
    parcels: list[pa.RecordBatch] = []
    gone = []
    for each in windows:
        into, sums = keys.assign_parts(each, 3)
        packing.add(each, into, sums)
        gone += rows_of(select_rows(each, np.flatnonzero(into >= 0)), layers.networks)
        parcels += packing.full_shards()
    parcels += packing.finish()
    networks: dict[str, int] = {}
    found = []
    for part in range(3):
        mine = [each for each in parcels if each.column("part")[0].as_py() == part]
        assert [each.column("number")[0].as_py() for each in mine] == list(range(len(mine)))
        pieces = (piece for each in mine for piece in unpack_shards(each, networks))
        for window in in_windows(pieces, 700):
            assert (np.diff(window.packet) > 0).all()
            found += rows_of(window, list(networks))
    assert {each.column("range")[0].as_py() for each in parcels} == {7}
    assert len(gone) > 100
    assert sorted(found) == sorted(gone)


def test_concatenated_windows_are_packed_together(tmp_path: Path) -> None:
    layers, windows = captured(tmp_path, 500)
    whole = concatenate(windows)
    assert rows_of(whole, layers.networks) == [
        row for each in windows for row in rows_of(each, layers.networks)
    ]
    networks: dict[str, int] = {"other": 0}
    (back,) = unpack_shards(pack_shard(whole, layers.networks), networks)
    assert rows_of(back, list(networks)) == rows_of(whole, layers.networks)


def test_many_ends_outgrow_the_table() -> None:
    from tests.pipeline.split.test_connection_keys import many

    some, ends = many(3000), EndpointTable()
    some.captured[:] = 0
    sums = np.array([(3000, 0)], dtype_of(Traffic))
    rows, payload = ends.pack(some, np.zeros(3000, np.int64), sums)
    again, _ = ends.pack(some, np.zeros(3000, np.int64), sums)
    assert len(payload) == 0
    assert (rows == again).all()
    networks: dict[str, int] = {}
    (back,) = unpack_shards(pack_shard(some, [""]), networks)
    assert rows_of(back, [""]) == rows_of(some, [""])
