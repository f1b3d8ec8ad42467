from __future__ import annotations

import gzip
import shutil
import struct
from pathlib import Path

import pytest

from tools.record.raw_packets import convert, count, walk


def pcap(*packets: bytes, magic: int = 0xA1B2C3D4, order: str = "<") -> bytes:
    head = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, 1)
    records = (struct.pack(order + "IIII", 1, 2, len(each), len(each)) + each for each in packets)
    return head + b"".join(records)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_packets_and_where_they_start(order: str, magic: int) -> None:
    packets = list(walk(pcap(b"one", b"", b"three", magic=magic, order=order)))
    assert [(each.start, each.data) for each in packets] == [
        (24, b"one"),
        (43, b""),
        (59, b"three"),
    ]


def test_a_truncated_packet_is_omitted() -> None:
    whole = pcap(b"one", b"two")
    for cut in range(1, 3 + 16):
        assert [each.data for each in walk(whole[:-cut])] == [b"one"]


def test_a_file_other_than_a_pcap_is_refused() -> None:
    with pytest.raises(ValueError, match="not a classic pcap"):
        list(walk(b"snoop\0\0\0"))


@pytest.mark.parametrize("form", ["pcap", "gz", "pcapng"])
def test_conversion_keeps_every_packet(tmp_path: Path, form: str) -> None:
    if form == "pcapng" and shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(bytes(60), bytes(61)))
    made = convert(path, form)
    assert count(made) == 2
    assert list(tmp_path.iterdir()) == [made]


def test_gzipped_packets_are_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(b"one"))
    assert gzip.decompress(convert(path, "gz").read_bytes()) == pcap(b"one")
