"""One pass over files: windows of any size, by one thread or by several."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dissector import Capture, CaptureError, Options, open_capture
from tests.dissector.engine.reading.test_capture import CAPTURES, crossing
from tests.tcp_captures import write


@pytest.mark.thinned(3)
@pytest.mark.parametrize("window_bytes", [1, 2, 17, 100, 1000, 10_000])
def test_windows_of_any_size_give_the_same_rows(window_bytes: int, tmp_path: Path) -> None:
    file = write(tmp_path / "a.pcap", crossing())
    rows = [exchange.row() for exchange in Capture([file], Options(window_bytes=window_bytes))]
    assert rows == [exchange.row() for exchange in open_capture(file)]
    capture = Capture([file], Options(window_bytes=window_bytes))
    windows = list(capture.windows())
    assert capture.reading is not None
    assert capture.reading.packets == len(crossing())
    assert sum(len(window.exchanges) for window in windows) == len(rows)


@pytest.mark.long
@pytest.mark.parametrize("jobs", [2, 3, 4])
def test_concurrent_stages_give_the_same_windows(jobs: int, tmp_path: Path) -> None:
    file = write(tmp_path / "a.pcap", crossing())
    for window_bytes in (1, 100, 10_000):
        one, more = (Capture([file], Options(window_bytes=window_bytes, jobs=n)) for n in (1, jobs))
        marks = [(len(window.exchanges), window.low_watermark) for window in one.windows()]
        assert [(len(w.exchanges), w.low_watermark) for w in more.windows()] == marks
        assert [exchange.row() for exchange in more] == [exchange.row() for exchange in one]


@pytest.mark.long
@pytest.mark.parametrize("jobs", [2, 3])
def test_windows_read_concurrently_give_the_same_table(jobs: int) -> None:
    """Including names of topic ids from one window in others."""
    paths = [CAPTURES / "demo.pcap", CAPTURES / "kafka4-java-share-group.pcap"]
    one, more = (Capture(paths, Options(window_bytes=3000, jobs=n)).exchanges() for n in (1, jobs))
    assert more.equals(one)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_small_first_window_is_ready_before_threads_start(jobs: int, tmp_path: Path) -> None:
    file = write(tmp_path / "a.pcap", crossing())
    options = Options(window_bytes=1000, first_window_bytes=100, jobs=jobs)
    before = threading.active_count()
    windows = Capture([file], options).windows(gleaning=True)
    first = next(windows)
    assert threading.active_count() == before
    counts = [len(first.exchanges), *(len(each.exchanges) for each in windows)]
    smaller, larger = (
        [len(each.exchanges) for each in Capture([file], Options(window_bytes=size)).windows()]
        for size in (100, 1000)
    )
    assert counts[0] == smaller[0]
    assert len(larger) <= len(counts) < len(smaller)
    rows = [exchange.row() for exchange in Capture([file], options)]
    assert rows == [exchange.row() for exchange in open_capture(file)]


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_missing_file_is_an_error_in_any_stage(jobs: int, tmp_path: Path) -> None:
    file = write(tmp_path / "a.pcap", crossing())
    capture = Capture([file, tmp_path / "none.pcap"], Options(window_bytes=100, jobs=jobs))
    with pytest.raises(CaptureError, match=r"none\.pcap"):
        list(capture)
