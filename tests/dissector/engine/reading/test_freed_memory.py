"""A capture that was read is freed at once, without the search for cycles of references."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from dissector.capture.formats import capture_reader
from dissector.capture.formats.window_buffers import BufferPool
from dissector.cli import main
from dissector.engine.reading import capture as reading_capture
from dissector.engine.reading.reader import Reading
from kafkashark import open_capture
from tests.corpus import FOLDER


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[BufferPool]]]:
    """The pools for windows of packets; cycles are not searched meanwhile."""
    made: list[weakref.ref[BufferPool]] = []

    def make() -> BufferPool:
        pool = BufferPool()
        made.append(weakref.ref(pool))
        return pool

    monkeypatch.setattr(capture_reader, "BufferPool", make)
    gc.disable()
    yield made
    gc.enable()


def test_a_capture_that_was_read_holds_no_memory(
    pools: list[weakref.ref[BufferPool]],
) -> None:
    capture = open_capture(str(FOLDER / "demo.pcap"))
    assert len(capture.exchanges())
    assert capture.reading is not None
    reading = weakref.ref(capture.reading)
    del capture
    assert reading() is None
    assert pools
    assert not any(pool() for pool in pools)


def test_commands_of_one_process_keep_no_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Reading]] = []

    def make(*args: Any) -> Reading:
        reading = Reading(*args)
        made.append(weakref.ref(reading))
        return reading

    monkeypatch.setattr(reading_capture, "Reading", make)
    for command in ("stats", "pairs"):
        assert main([command, str(FOLDER / "demo.pcap"), "-o", os.devnull]) == 0
    gc.collect()
    assert made
    assert not any(reading() for reading in made)
