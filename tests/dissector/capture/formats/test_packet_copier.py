"""Selected packets of captures in one pcapng file."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from dissector.capture.formats import packet_copy_kernel
from dissector.capture.formats.capture_reader import WINDOW_BYTES, read_packets
from dissector.capture.formats.packet_copier import PacketCopier
from tests.dissector.capture.handmade_packets import block, enhanced, interface, pcap, section
from tests.kernel_modes import both

compiled_or_not = both(packet_copy_kernel)

NS = 1_000_000_000
COMMENT = struct.pack("<HH4s", 1, 4, b"look") + bytes(4)


def copied(
    folder: Path,
    files: Sequence[bytes],
    keep: Sequence[int],
    window_bytes: int = WINDOW_BYTES,
    comments: Mapping[int, Sequence[str]] | None = None,
) -> bytes:
    """Write the packets of these numbers, counted over all files."""
    paths = []
    for number, data in enumerate(files):
        path = folder / f"{number}.cap"
        path.write_bytes(data)
        paths.append(str(path))
    out = folder / "out.pcapng"
    with out.open("wb") as file:
        copier = PacketCopier(paths, file, comments=comments)
        for window in read_packets(paths, window_bytes=window_bytes, every_block=True):
            numbers = window.first + np.arange(len(window))
            copier.write(window, np.isin(numbers, list(keep)))
        copier.finish()
    assert copier.copied == len(keep)
    return out.read_bytes()


def read(folder: Path, data: bytes) -> list[tuple[int, bytes, int, int]]:
    """Return time, bytes, original length and link type of each packet."""
    path = folder / "again.pcapng"
    path.write_bytes(data)
    found = []
    for window in read_packets([path]):
        assert not window.problems
        columns = window.time_ns, window.start, window.captured, window.original, window.link
        for time_ns, start, captured, original, link in zip(*map(list, columns), strict=True):
            content = bytes(window.data[start : start + captured])
            found.append((int(time_ns), content, int(original), int(link)))
    return found


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_packets_of_pcap(order: str, magic: int, tmp_path: Path) -> None:
    unit = 1 if magic == 0xA1B23C4D else 1000
    packets = [(5 * NS // unit + number, bytes([number] * number)) for number in range(7)]
    file = pcap(packets, order=order, magic=magic, link=101)
    again = read(tmp_path, copied(tmp_path, [file], [1, 4, 6]))
    assert again == [
        ((5 * NS // unit + number) * unit, bytes([number] * number), number, 101)
        for number in (1, 4, 6)
    ]


def test_truncated_packets(tmp_path: Path) -> None:
    file = pcap([(NS, b"abcdefgh")], snap=3)
    assert read(tmp_path, copied(tmp_path, [file], [0])) == [(NS, b"abc", 8, 1)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("window_bytes", [1, 100, WINDOW_BYTES])
def test_blocks_of_pcapng_are_copied(order: str, window_bytes: int, tmp_path: Path) -> None:
    """Interfaces, names, secrets and comments are kept, statistics are not."""
    names, secrets, unknown = (block(kind, b"1234", order) for kind in (4, 10, 0xBAD))
    head = section(order), interface(order=order), interface(101, order=order)
    comment = struct.pack(f"{order}IIIII", 1, 0, 9, 2, 2) + b"hi\0\0" + COMMENT
    packets = enhanced(b"one", 7, 0, order), block(6, comment, order), enhanced(b"x", 8, 1, order)
    left_out = block(5, bytes(12), order), block(0x40000BAD, b"1234", order)
    file = [*head, names, packets[0], secrets, packets[1], *left_out, packets[2], unknown]
    out = copied(tmp_path, [b"".join(file)], [1], window_bytes)
    assert out == b"".join((*head, names, secrets, packets[1], unknown))


def test_sections_have_no_length(tmp_path: Path) -> None:
    head = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, 4711) + b"option")
    out = copied(tmp_path, [head + interface() + enhanced(b"one", 7)], [])
    assert out[:16] == head[:16]
    assert out[16:24] == b"\xff" * 8
    assert out[24:] == head[24:] + interface()


def test_a_simple_packet_has_the_time_of_its_predecessor(tmp_path: Path) -> None:
    resolution = interface(options=[(9, b"\x09")])
    simple = block(3, struct.pack("<I", 3) + b"two")
    file = section() + resolution + enhanced(b"one", 1234567) + simple + enhanced(b"three", 9999999)
    again = read(tmp_path, copied(tmp_path, [file], [1, 2]))
    assert [each[:2] for each in again] == [(1234567, b"two"), (9999999, b"three")]


def test_obsolete_packets(tmp_path: Path) -> None:
    old = [block(2, struct.pack("<HHIIII", 0, 0, 0, at, 1, 1) + b"a") for at in (5, 6)]
    out = copied(tmp_path, [section() + interface() + b"".join(old)], [1])
    assert out == section() + interface() + old[1]


def test_each_file_is_a_section(tmp_path: Path) -> None:
    """Also one of another byte order, and one without packets."""
    first = pcap([(NS, b"a"), (NS, b"b")])
    second = section(">") + interface(113, order=">") + enhanced(b"c", 2_000_000, 0, ">")
    files = [first, pcap([]), second, pcap([])]
    again = read(tmp_path, copied(tmp_path, files, [1, 2]))
    assert [each[1] for each in again] == [b"b", b"c"]
    assert [each[3] for each in again] == [1, 113]


def test_the_copy_ends_where_reading_does(tmp_path: Path) -> None:
    whole = section() + interface() + enhanced(b"one", 7)
    out = copied(tmp_path, [whole + struct.pack("<II", 6, 3) + bytes(40)], [0])
    assert out == whole


@pytest.mark.parametrize("order", ["<", ">"])
def test_comments_of_the_user_replace_those_of_the_capture(order: str, tmp_path: Path) -> None:
    """In blocks of each kind, and in packets of pcap; other options stay."""
    flags = struct.pack(f"{order}HHI", 2, 4, 7)
    look = struct.pack(f"{order}HH4s", 1, 4, b"look")
    end = bytes(4)

    def packet(options: bytes, kind: int = 6) -> bytes:
        head = struct.pack(f"{order}IIIII", 0, 0, 9, 3, 3)
        return block(kind, head + b"abc\0" + options, order)

    simple = block(3, struct.pack(f"{order}I", 3) + b"two", order)
    new = struct.pack(f"{order}HH", 1, 5) + "né w".encode() + bytes(3)
    head = section(order), interface(order=order)
    old = packet(look + flags + end), packet(b""), packet(look + end, 2), simple, packet(look + end)
    comments = {0: ["né w"], 1: ["né w"], 2: [], 3: ["né w"], 5: ["né w"]}
    files = [b"".join((*head, *old)), pcap([(NS, b"a"), (NS, b"b")])]
    out = copied(tmp_path, files, [0, 1, 2, 3, 4, 5, 6], comments=comments)
    assert out.startswith(b"".join((*head, packet(new + flags + end), packet(new + end))))
    assert packet(b"", 2) in out
    assert out.count("né w".encode()) == 4
    assert out.count(b"look") == 1
    assert [each[1] for each in read(tmp_path, out)] == [b"abc"] * 3 + [b"two", b"abc", b"a", b"b"]
