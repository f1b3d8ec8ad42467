"""Streams return the stored bytes, and zeros elsewhere."""

from __future__ import annotations

import tracemalloc
from contextlib import closing

import numpy as np

from dissector.redaction.packets.stream_store import StreamStore


def test_ranges_and_holes() -> None:
    with closing(StreamStore()) as store:
        store.put(3, 0, 10, b"later")
        store.put(3, 0, 2, b"first")
        store.put(3, 1, 0, b"other side")
        assert store.get(3, 0, 0, 20) == b"\0\0first\0\0\0later" + bytes(5)
        assert store.get(3, 0, 4, 2) == b"rs"
        assert store.get(3, 0, -3, 6) == bytes(5) + b"f"
        assert store.get(4, 0, 0, 5) == bytes(5)
        assert store.get(3, 1, 6, 100) == b"side" + bytes(96)


def test_ranges_together_in_any_order() -> None:
    data = np.frombuffer(b"eightfour..right", np.uint8)
    columns = [
        [3, 3, 3, 3],
        [0, 0, 1, 0],
        [5, 0, 0, 20],
        [5, 0, 11, 9],
        [4, 5, 5, 2],
    ]
    with closing(StreamStore()) as store:
        store.put(3, 0, 9, b"before")
        store.put_all(np.array(columns), data)
        assert store.get(3, 0, 0, 23) == b"eightfourbefore" + bytes(5) + b"..\0"
        assert store.get(3, 1, 0, 6) == b"right\0"


def test_runs_of_a_stream_take_the_memory_of_one_range() -> None:
    count = 50_000
    each = np.arange(count)
    same = np.zeros(count, np.int64)
    with closing(StreamStore()) as store:
        store.put(1, 0, 0, b"x")
        tracemalloc.start()
        store.put_all(np.stack((same, same, each, each, same + 1)), np.zeros(count, np.uint8))
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept < count
        assert store.get(0, 0, count - 1, 2) == bytes(2)
