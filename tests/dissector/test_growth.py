"""The work for hostile captures is linear in their size."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dissector import open_capture
from dissector.engine.correlation.state_tables import MAX_OPEN
from dissector.kernel import Kernel
from dissector.view.text.detail_tree import detail_tree
from tests.dissector.hostile import KINDS

pytestmark = pytest.mark.long

FLOOR_S, FLOOR_BYTES = 0.1, 4 << 20
"""What does not grow with the capture."""


@pytest.fixture(autouse=True)
def as_python() -> Iterator[None]:
    """Run kernels in Python, to keep compilation out of measurements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "compiled", None)
        yield


def read(path: Path) -> None:
    """Read a capture as exchange objects, and as columns."""
    for exchange in open_capture(path):
        exchange.row()
    open_capture(path).exchanges()
    open_capture(path).records()


def pair(path: Path) -> None:
    """Pair requests and responses only."""
    for _ in open_capture(path).windows():
        pass


def show(path: Path) -> None:
    """Show each field of each message, as a tree and as a row."""
    for exchange in open_capture(path):
        for message in exchange.messages:
            assert detail_tree(message)
    open_capture(path).fields()


def seconds(path: Path, work: Callable[[Path], None] = read) -> float:
    """Return the processor time of reading a capture."""
    gc.collect()
    before = time.process_time()
    work(path)
    return time.process_time() - before


def peak(path: Path) -> int:
    """Return the most memory that reading a capture takes."""
    tracemalloc.start()
    try:
        read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_work_is_linear_in_the_size_of_the_capture(kind: str, tmp_path: Path) -> None:
    make: Callable[[int], Any]
    make, size = KINDS[kind]
    files = [tmp_path / f"{number}.pcap" for number in range(3)]
    for path, count in zip(files, (size // 4, size, 4 * size), strict=True):
        path.write_bytes(make(count))
    tiny, small, large = files
    read(tiny)  # one-time initialisation is not counted
    most = FLOOR_S + 2 * grown(small, large) * min(seconds(small), seconds(small))
    assert seconds(large) < most or seconds(large) < most  # another process may have interfered
    # Memory is measured on smaller captures, as tracing is several times slower.
    assert peak(small) < FLOOR_BYTES + 2 * grown(tiny, small) * peak(tiny)


@pytest.mark.parametrize("kind", ["orphans", "open requests"])
def test_responses_are_paired_without_a_search(kind: str, tmp_path: Path) -> None:
    # Enough requests to make a search, of some nanoseconds each, dominate.
    make, small, large = KINDS[kind][0], tmp_path / "small.pcap", tmp_path / "large.pcap"
    small.write_bytes(make(MAX_OPEN // 4))
    large.write_bytes(make(MAX_OPEN))
    least = min(seconds(small, pair), seconds(small, pair))
    most = FLOOR_S + 2 * grown(small, large) * least
    assert seconds(large, pair) < most or seconds(large, pair) < most


@pytest.mark.parametrize("kind", ["tags", "topics"])
def test_fields_are_masked_without_a_search(kind: str, tmp_path: Path) -> None:
    # Unknown tagged fields are secret, each of them.
    make, small, large = KINDS[kind][0], tmp_path / "small.pcap", tmp_path / "large.pcap"
    small.write_bytes(make(1000))
    large.write_bytes(make(16_000))
    show(small)
    most = FLOOR_S + 2 * grown(small, large) * min(seconds(small, show), seconds(small, show))
    assert seconds(large, show) < most or seconds(large, show) < most


def grown(small: Path, large: Path) -> float:
    """Return how many times as large a file is as another."""
    return large.stat().st_size / small.stat().st_size
