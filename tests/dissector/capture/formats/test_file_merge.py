"""Concurrent files are merged by time, without the times of one file being sorted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.columns import SEVERAL
from dissector.capture.formats import file_merge
from dissector.capture.formats.capture_reader import read_packets
from tests.dissector.capture.handmade_packets import pcap
from tests.example_counts import examples

S = 1_000_000_000
Content = tuple[int, bytes]


def written(folder: Path, files: Sequence[Sequence[Content]]) -> list[str]:
    paths = []
    for number, packets in enumerate(files):
        path = folder / f"{number}.pcap"
        path.write_bytes(pcap(packets))
        paths.append(str(path))
    return paths


def merged(paths: Sequence[str], window_bytes: int) -> list[tuple[int, Content]]:
    """Return the file, time in seconds and bytes of each packet; check its position."""
    whole = [Path(path).read_bytes() for path in paths]
    found: list[tuple[int, Content]] = []
    for window in read_packets(paths, window_bytes=window_bytes):
        assert window.first == len(found)
        assert not window.problems
        is_several = len(set(window.file.tolist())) > 1
        assert (window.path_index == SEVERAL) >= is_several
        for row, file in enumerate(window.file.tolist()):
            start, captured = int(window.start[row]), int(window.captured[row])
            data = bytes(window.data[start : start + captured])
            at = window.position(row)
            assert whole[file][at : at + captured] == data
            found.append((file, (int(window.time_ns[row]) // 10**9, data)))
    return found


def expected(files: Sequence[Sequence[Content]]) -> list[tuple[int, Content]]:
    """Return the packets by the latest time of their file so far; of equal ones by file."""
    keyed = []
    for number, packets in enumerate(files):
        latest = np.maximum.accumulate([at for at, _ in packets]).tolist() if packets else []
        begin = packets[0][0] if packets else 0
        keyed += [
            ((key, begin, number, row), (number, (at // S, data)))
            for row, (key, (at, data)) in enumerate(zip(latest, packets, strict=True))
        ]
    return [each for _, each in sorted(keyed, key=lambda pair: pair[0])]


packets = st.lists(
    st.tuples(st.integers(0, 20).map(lambda at: at * S), st.binary(min_size=1, max_size=30)),
    max_size=12,
)


@settings(max_examples=examples(100), deadline=None)
@given(files=st.lists(packets, min_size=2, max_size=5), window_bytes=st.sampled_from([1, 90, 1000]))
def test_packets_come_in_time_order(
    files: list[list[Content]], window_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths = written(tmp_path_factory.mktemp("files"), files)
    assert merged(paths, window_bytes) == expected(files)


def test_only_so_many_files_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [[(number * S + at * 100 * S, b"x") for at in range(2)] for number in range(5)]
    paths = written(tmp_path, files)
    monkeypatch.setattr(file_merge, "MAX_OPEN", 2)
    windows = list(read_packets(paths))
    assert sum(map(len, windows)) == 10
    said = {Path(name).name for window in windows for name, _ in window.problems}
    assert said == {"3.pcap", "4.pcap"} | {"2.pcap"}


def test_windows_of_concurrent_files_share_the_memory_of_one(tmp_path: Path) -> None:
    files = [[(at * S, bytes(1000)) for at in range(300)] for _ in range(10)]
    sizes = [
        len(each.data) for each in read_packets(written(tmp_path, files), window_bytes=1 << 20)
    ]
    assert sum(sizes) >= 10 * 300 * 1000
    assert max(sizes) < 3 << 20


def test_files_one_after_another_are_not_copied(tmp_path: Path) -> None:
    files = [[(at * S, b"x") for at in range(first, first + 3)] for first in (0, 2, 4)]
    windows = list(read_packets(written(tmp_path, files)))
    assert [len(each) for each in windows if each.path_index != SEVERAL] != []
    apart = [[(at * S, b"x") for at in range(first, first + 2)] for first in (0, 2, 4)]
    windows = list(read_packets(written(tmp_path, apart)))
    assert [each.path_index for each in windows] == [0, 1, 2]
