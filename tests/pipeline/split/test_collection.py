"""Files become one capture in the order of their first packets."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dissector.errors import CaptureError, UsageError
from pipeline.split.collection import Collection, File, find_captures, inspect_file
from tests.dissector.engine.reading.test_capture import crossing
from tests.pipeline.split_captures import delayed
from tests.tcp_captures import START_NS, pcap_file, write


def test_files_are_in_the_order_of_their_first_packets(tmp_path: Path) -> None:
    packets = crossing()
    second = write(tmp_path / "a.pcap", delayed(packets, 500))
    first = write(tmp_path / "b.pcap", packets)
    same = write(tmp_path / "c.pcapng", packets)
    collection = Collection.of([second, same, first])
    assert [file.path for file in collection.files] == [first, same, second]
    assert [file.divisible for file in collection.files] == [True, False, True]
    assert collection.files[0].first_ns == START_NS
    assert collection.files[0].size == Path(first).stat().st_size


def test_compressed_files_are_not_split(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress(pcap_file(crossing())))
    file = inspect_file(str(path))
    assert (file.divisible, file.first_ns, file.problem) == (False, START_NS, "")


def test_files_without_packets_and_other_files_are_last(tmp_path: Path) -> None:
    stranger = tmp_path / "0.txt"
    stranger.write_text("nothing")
    empty = write(tmp_path / "1.pcap", [])
    real = write(tmp_path / "2.pcap", crossing())
    found = Collection.of([str(tmp_path)]).files
    assert [file.path for file in found] == [real, str(stranger), empty]
    assert found[1] == File(str(stranger), problem="not a capture: text")
    assert (found[2].problem, found[2].first_ns) == ("", None)
    # Deleted after it was found.
    assert inspect_file(str(tmp_path / "3.pcap")).problem == "no such file"


def test_a_collection_needs_a_capture(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("nothing")
    with pytest.raises(CaptureError, match=r"/a\.txt: not a capture: text$"):
        find_captures([str(tmp_path)])
    empty = write(tmp_path / "c.pcap", [])
    assert [file.path for file in find_captures([str(tmp_path)]).files][-1] == empty
    with pytest.raises(UsageError, match="no captures found"):
        find_captures([])
