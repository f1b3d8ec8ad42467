"""Streams return the stored bytes, and zeros elsewhere."""

from __future__ import annotations

from contextlib import closing

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
