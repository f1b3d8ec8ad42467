from __future__ import annotations

import gzip
import io
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.columns import Packets
from dissector.capture.formats import pcap as pcap_module
from dissector.capture.formats import pcapng as pcapng_module
from dissector.capture.formats.capture_reader import read_packets, read_tls_secrets
from dissector.errors import CaptureError, DissectorError
from tests.dissector.capture.handmade_packets import block, enhanced, interface, pcap, section
from tests.kernel_modes import MODES, running

PACKETS = [(1_700_000_000_123_456_789 + 1000 * i, bytes([i]) * (20 + 7 * i)) for i in range(9)]
NG = section() + interface() + b"".join(enhanced(data, time // 1000) for time, data in PACKETS)


def read(data: bytes, window_bytes: int = 1 << 20) -> list[Packets]:
    return list(read_packets(["-"], stdin=io.BytesIO(data), window_bytes=window_bytes))


def rows(windows: list[Packets]) -> list[tuple[int, bytes, int, int]]:
    """Return (time, bytes, bytes on the wire, link type) of every packet."""
    found = []
    for window in windows:
        for i in range(len(window)):
            start, captured = int(window.start[i]), int(window.captured[i])
            data = window.data[start : start + captured].tobytes()
            assert len(data) == captured
            found.append(
                (int(window.time_ns[i]), data, int(window.original[i]), int(window.link[i]))
            )
    return found


def problems(windows: list[Packets]) -> list[str]:
    return [f"{file}: {problem}" for window in windows for file, problem in window.problems]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("magic", "unit"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1), (0xA1B2CD34, 1000)]
)
def test_pcap_in_each_byte_order_and_unit(order: str, magic: int, unit: int) -> None:
    data = pcap(
        [(time // unit, each) for time, each in PACKETS], order=order, magic=magic, link=113
    )
    want = [(time // unit * unit, each, len(each), 113) for time, each in PACKETS]
    windows = read(data)
    assert rows(windows) == want
    assert problems(windows) == []


def test_pcap_cut_by_snaplen_keeps_the_original_length() -> None:
    assert [
        (len(data), original) for _, data, original, _ in rows(read(pcap(PACKETS, snap=21)))
    ] == [(min(21, len(data)), len(data)) for _, data in PACKETS]


@pytest.mark.parametrize(
    ("version", "lengths"), [((2, 2), (30, 20)), ((2, 3), (30, 20)), ((2, 3), (20, 30))]
)
def test_old_pcap_files_have_swapped_lengths(
    version: tuple[int, int], lengths: tuple[int, int]
) -> None:
    data = pcap([], version=version) + struct.pack("<IIII", 1, 2, *lengths) + bytes(20)
    assert rows(read(data)) == [(1_000_000_002, bytes(20), 30, 1)]


def test_the_link_type_excludes_the_fcs_length() -> None:
    assert rows(read(pcap(PACKETS[:1], link=0x24000001)))[0][3] == 1


@pytest.mark.parametrize(
    ("options", "ticks", "time_ns"),
    [
        ([], 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        ([(9, b"\x09")], 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        ([(9, b"\x00")], 1_700_000_000, 1_700_000_000_000_000_000),
        ([(9, b"\x0c")], 1_700_000_000_123_456, 1_700_000_000_123),
        ([(9, b"\x8a")], 1025, 1_000_976_562),
        ([(14, struct.pack("<q", 100))], 5, 100_000_005_000),
        ([(2, b"eth0"), (9, b"\x06"), (14, struct.pack("<q", -1))], 2_000_001, 1_000_001_000),
        ([(9, b"\x00")], 2**64 - 1, 2**62 - 1),
        ([(0, b""), (9, b"\x09")], 7, 7000),
    ],
)
def test_pcapng_clocks(options: list[tuple[int, bytes]], ticks: int, time_ns: int) -> None:
    data = section() + interface(options=options) + enhanced(b"x", ticks)
    assert rows(read(data)) == [(time_ns, b"x", 1, 1)]


def test_pcapng_sections_have_their_own_byte_order_and_interfaces() -> None:
    data = section() + interface(1) + interface(101, options=[(9, b"\x09")])
    data += enhanced(b"one", 1, 0) + enhanced(b"two", 2, 1)
    data += section(">") + interface(113, order=">") + enhanced(b"three", 3, 0, ">")
    windows = read(data)
    assert rows(windows) == [(1000, b"one", 3, 1), (2, b"two", 3, 101), (3000, b"three", 5, 113)]
    assert problems(windows) == []


def test_pcapng_simple_and_obsolete_packets_and_other_blocks() -> None:
    data = section() + interface(1, snap=4) + block(4, b"names!!!") + block(10, b"secrets")
    data += enhanced(b"first", 8) + block(3, struct.pack("<I", 9) + b"simp") + block(5, bytes(12))
    data += block(2, struct.pack("<HHIIII", 0, 1, 0, 9, 3, 30) + b"old") + block(0x0BAD, b"private")
    windows = read(data)
    assert rows(windows) == [(8000, b"first", 5, 1), (8000, b"simp", 9, 1), (9000, b"old", 30, 1)]
    assert problems(windows) == []


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (enhanced(b"x", 1, 7), "packet of an undescribed interface at byte 76"),
        (block(6, b"short"), "block too short for its type at byte 48"),
        (
            block(6, struct.pack("<IIIII", 0, 0, 1, 99, 99) + b"ab"),
            "packet of 99 bytes in a shorter block at byte 76",
        ),
        (enhanced(b"x", 1)[:-1] + b"\x01", "the two lengths of a block differ at byte 48"),
        (
            block(1, struct.pack("<HHIHH", 1, 0, 0, 9, 99)),
            "option longer than its block at byte 64",
        ),
    ],
)
def test_pcapng_continues_after_a_bad_block(bad: bytes, what: str) -> None:
    windows = read(section() + interface() + bad + enhanced(b"good", 5))
    assert rows(windows)[-1] == (5000, b"good", 4, 1)
    assert problems(windows) == [f"-: at byte {what.split('at byte ')[1]}: {what.split(' at ')[0]}"]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (struct.pack("<II", 6, 4) + bytes(8), "invalid block length 4"),
        (struct.pack("<II", 6, 1 << 30) + bytes(8), "invalid block length 1,073,741,824"),
        (
            struct.pack("<III", 0x0A0D0D0A, 28, 5) + bytes(16),
            "section header with an invalid byte-order magic",
        ),
    ],
)
def test_pcapng_goes_on_behind_inconsistent_lengths(bad: bytes, what: str) -> None:
    windows = read(section() + interface() + enhanced(b"good", 5) + bad + enhanced(b"next", 6))
    assert [data for _, data, _, _ in rows(windows)] == [b"good", b"next"]
    assert problems(windows) == [f"-: at byte 84: {what}: lost {len(bad)} bytes"]


def test_an_impossible_record_without_another_behind_it() -> None:
    data = pcap(PACKETS[:1]) + struct.pack("<IIII", 0, 0, 1 << 30, 1 << 30) + bytes(100)
    windows = read(data)
    assert len(rows(windows)) == 1
    assert problems(windows) == [
        "-: at byte 60: invalid packet length 1,073,741,824: lost 116 bytes"
    ]


def secrets(content: bytes, kind: int = 0x544C534B, order: str = "<") -> bytes:
    """Return a Decryption Secrets Block; by default a TLS key log."""
    head = struct.pack(f"{order}II", kind, len(content))
    return block(10, head + content + bytes(-len(content) % 4), order)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("window_bytes", [64, 1 << 20])
def test_tls_secrets_at_any_position(tmp_path: Path, order: str, window_bytes: int) -> None:
    packet = enhanced(b"x" * 60, 5, order=order)
    ng = section(order) + secrets(b"first", order=order) + interface(order=order) + packet
    ng += secrets(b"of WireGuard", 0x57474B4C, order) + secrets(b"second", order=order) + packet
    ng += secrets(b"at the end", order=order)
    windows = read(ng, window_bytes)
    found = [each for window in windows for each in window.tls_secrets]
    assert found == [b"first", b"second", b"at the end"]
    assert sum(map(len, windows)) == 2
    assert not [each for window in windows for each in window.problems]
    assert "second" not in repr(windows)
    (tmp_path / "a.pcapng").write_bytes(ng)
    (tmp_path / "b.pcap").write_bytes(pcap(PACKETS))
    (tmp_path / "c.pcapng.gz").write_bytes(gzip.compress(ng))
    names = sorted(tmp_path.iterdir())
    assert list(read_tls_secrets(["-", *names])) == found * 2


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (block(10, b"1234"), "block too short for its type"),
        (block(10, struct.pack("<II", 0x544C534B, 99) + b"keys"), "secrets longer than their"),
    ],
)
def test_bad_tls_secrets(bad: bytes, what: str) -> None:
    windows = read(section() + interface() + bad + enhanced(b"y" * 60, 5))
    assert sum(map(len, windows)) == 1
    assert what in windows[0].problems[0][1].what


@pytest.mark.parametrize("whole", [pcap(PACKETS), NG], ids=["pcap", "pcapng"])
def test_a_truncated_file_is_read_to_its_last_whole_packet(whole: bytes) -> None:
    want = rows(read(whole))
    for end in range(56, len(whole)):
        windows = read(whole[:end])
        got = rows(windows)
        assert got == want[: len(got)]
        said = problems(windows)
        assert len(said) <= 1
        if said:
            position, left = said[0].split(" byte ")[1].split(": cut off: ")
            assert int(position) + int(left.split()[0]) == end


@pytest.mark.parametrize("whole", [pcap(PACKETS), NG], ids=["pcap", "pcapng"])
def test_windows_of_every_size_give_the_same_packets(whole: bytes) -> None:
    want = rows(read(whole))
    assert len(want) == len(PACKETS)
    for window_bytes in range(1, len(whole) + 2):
        windows = read(whole, window_bytes)
        assert rows(windows) == want
        assert [window.first for window in windows] == [
            sum(len(before) for before in windows[:i]) for i in range(len(windows))
        ]
    assert [len(window) for window in read(whole, 1)] == [1] * len(want)


CAPTURES = {
    "pcap": pcap(PACKETS),
    "big-endian": pcap(
        [(time // 1000, each) for time, each in PACKETS], order=">", magic=0xA1B2CD34
    ),
    "swapped": pcap(PACKETS, version=(2, 2)),
    "mixed": pcap(PACKETS, version=(2, 3), snap=21),
    "pcapng": NG,
    "interfaces": section(">")
    + interface(1, order=">", options=[(9, b"\x8a"), (14, struct.pack(">q", -9))])
    + interface(113, order=">", options=[(9, b"\x0c")])
    + b"".join(enhanced(data, time // 9, i & 1, ">") for i, (time, data) in enumerate(PACKETS))
    + block(4, b"names!!!", ">")
    + enhanced(b"x", 2**64 - 1, 0, ">")
    + enhanced(b"y", 5, 2, ">")
    + section()
    + interface(options=[(14, struct.pack("<q", 2**62))])
    + enhanced(b"z", 7),
}


@pytest.mark.parametrize("whole", CAPTURES.values(), ids=CAPTURES)
def test_python_and_compiled_kernels_agree(whole: bytes) -> None:
    reads = []
    for way in MODES:
        with running(way, pcap_module, pcapng_module):
            cut = [read(whole[:end]) for end in range(48, len(whole) + 1, 3)]
            each = [read(whole), read(whole, 1), *cut]
            reads.append([(rows(windows), problems(windows)) for windows in each])
    assert reads[0] == reads[1]
    assert len(reads[0][0][0]) >= len(PACKETS)


def test_more_packets_than_initial_room() -> None:
    empty = pcap([(i, b"") for i in range(1, 1001)])
    assert [time for time, _, _, _ in rows(read(empty))] == list(range(1, 1001))
    blocks = section() + interface(options=[(9, b"\x09")]) + block(3, bytes(4)) * 300
    blocks += b"".join(enhanced(b"", i) + block(3, bytes(4)) for i in range(300))
    times = [time for time, _, _, _ in rows(read(blocks))]
    assert times == [0] * 300 + [i // 2 for i in range(600)]


def test_a_window_of_several_pieces() -> None:
    whole = pcap([(i, bytes([i & 255]) * (i % 3000)) for i in range(2500)])
    (window,) = read(whole, 1 << 23)
    assert len(whole) > 2 << 20
    assert rows([window]) == rows(read(whole, 1 << 16))


COMPRESS = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "lz4": lz4.frame.compress,
}


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("window_bytes", [1, 100, 1 << 20])
def test_compressed_in_several_members(name: str, window_bytes: int) -> None:
    whole = pcap(PACKETS)
    for cut in (0, 3, 24, 100, len(whole)):
        data = COMPRESS[name](whole[:cut]) + COMPRESS[name](whole[cut:])
        windows = read(data, window_bytes)
        assert rows(windows) == rows(read(whole))
        assert problems(windows) == []


@pytest.mark.parametrize("name", COMPRESS)
def test_compressed_in_many_small_members(name: str) -> None:
    whole = pcap(PACKETS) + pcap(PACKETS)[24:] * 40
    data = b"".join(COMPRESS[name](whole[at : at + 5]) for at in range(0, len(whole), 5))
    assert len(data) > 4 * 4096
    assert rows(read(data)) == rows(read(whole))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", COMPRESS)
def test_compressed_large_and_truncated(name: str) -> None:
    noise = random.Random(1)
    whole = pcap([(i, noise.randbytes(1000) + bytes(1000)) for i in range(2000)])
    data = COMPRESS[name](whole)
    assert len(rows(read(data))) == 2000
    windows = read(data[: len(data) // 2])
    assert 500 < len(rows(windows)) < 1500
    assert any(f"{name} data is cut off" in each for each in problems(windows))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("place", range(0, 70_000, 3_000))
@pytest.mark.parametrize("name", COMPRESS)
def test_compressed_and_damaged(name: str, place: int) -> None:
    noise = random.Random(place)
    whole = pcap([(i, noise.randbytes(1000)) for i in range(500)])
    data = bytearray(COMPRESS[name](whole))
    data[len(data) // 2 + place : len(data) // 2 + place + 50] = bytes(50)
    windows = read(bytes(data) + b"\xff" * 9)
    assert any(name in each for each in problems(windows))
    assert len(rows(windows)) > 150, "more than the damaged block of 64 KiB is lost"


def test_zeros_after_gzip_are_padding_and_other_bytes_a_problem() -> None:
    data = gzip.compress(pcap(PACKETS))
    assert problems(read(data + bytes(512))) == []
    (said,) = problems(read(data + b"more"))
    assert said.endswith("bytes after the end of the gzip data are not gzip data")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "empty file"),
        (b"snoop\0\0\0\0\0\0\2\0\0\0\4", "snoop file"),
        (b"Dear reader,\nthis is no capture.\n", "text"),
        ("Größe und Änderung, überall".encode(), "text"),
        (b"\x00\x01\x02\x03\xff", "begins with bytes 00 01 02 03 ff"),
        (b"BZh91AY", "bzip2 file"),
        (gzip.compress(b"hello there"), "text inside gzip"),
        (gzip.compress(b""), "empty file inside gzip"),
        (gzip.compress(b"hello there")[:-9], "gzip data is cut off"),
    ],
)
def test_the_error_for_other_files_names_the_file(data: bytes, what: str) -> None:
    with pytest.raises(CaptureError, match=r"^-: not a capture: ") as caught:
        read(data)
    assert str(caught.value).endswith(what)
    assert "\n" not in str(caught.value)


def test_a_truncated_pcap_header() -> None:
    with pytest.raises(CaptureError, match="cut off in its header at byte 23"):
        read(pcap([])[:23])


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"gone\.pcap: no such file"):
        list(read_packets([tmp_path / "gone.pcap"]))
    with pytest.raises(CaptureError, match="is a directory"):
        list(read_packets([tmp_path]))
    with pytest.raises(CaptureError, match="no such file"):
        list(read_packets(["a\0b"]))


def test_captures_without_packets() -> None:
    assert read(pcap([])) == []
    assert read(section()) == []


def test_several_files_are_one_capture(tmp_path: Path) -> None:
    for i in range(3):
        file = (
            gzip.compress(pcap(PACKETS[3 * i : 3 * i + 3]))
            if i == 1
            else pcap(PACKETS[3 * i :][:3])
        )
        (tmp_path / f"{i}.anything").write_bytes(file)
    windows = list(read_packets([tmp_path / f"{i}.anything" for i in range(3)]))
    assert rows(windows) == rows(read(pcap(PACKETS)))
    assert [window.first for window in windows] == [0, 3, 6]
    assert [window.file.tolist() for window in windows] == [[0] * 3, [1] * 3, [2] * 3]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_packets_of_a_paused_pipe_are_available(compress: Callable[[bytes], bytes]) -> None:
    readable, writable = os.pipe()
    with io.FileIO(readable) as stdin, io.FileIO(writable, "w") as stream:
        stream.write(compress(pcap(PACKETS[:2])))
        windows = read_packets(["-"], stdin=stdin)
        assert len(next(windows)) == 2
        packet = pcap(PACKETS[2:3])[24:]
        stream.write(compress(packet[:20]))
        stream.write(compress(packet[20:]))
        assert rows([next(windows)]) == rows(read(pcap(PACKETS)))[2:3]
        stream.close()
        assert list(windows) == []


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pcap(PACKETS))
    with (tmp_path / "a").open() as text:
        monkeypatch.setattr("sys.stdin", text)
        assert rows(list(read_packets(["-"]))) == rows(read(pcap(PACKETS)))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pcap(PACKETS))))
    assert rows(list(read_packets(["-"]))) == rows(read(pcap(PACKETS)))


def test_a_bad_file_among_several_is_an_error_before_any_packet(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pcap(PACKETS))
    (tmp_path / "b").write_bytes(b"not this one")
    with pytest.raises(CaptureError, match="b: not a capture: text"):
        next(read_packets([tmp_path / "a", tmp_path / "b"]))


def test_damage_in_one_file_does_not_end_the_next(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pcap(PACKETS)[:-1])
    (tmp_path / "b").write_bytes(pcap(PACKETS))
    windows = list(read_packets([tmp_path / "a", tmp_path / "b"]))
    assert len(rows(windows)) == 17
    assert len(problems(windows)) == 1


@given(st.data())
def test_arbitrary_bytes_raise_only_capture_errors(data: st.DataObject) -> None:
    file = bytearray(data.draw(st.sampled_from([pcap(PACKETS), NG])))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(file) - 1))
        file[at] = data.draw(st.integers(0, 255))
    window_bytes = data.draw(st.sampled_from([1, 64, 1 << 16]))
    try:
        windows = read(bytes(file), window_bytes)
    except DissectorError:
        return
    assert sum(len(each) for _, each, _, _ in rows(windows)) <= len(file)


def test_every_shared_capture(shared: Path) -> None:
    files = sorted((shared / "captures/tcp").iterdir()) + sorted(
        (shared / "captures/kafka").iterdir()
    )
    counted = {}
    for file in files:
        if file.suffix == ".snoop":
            with pytest.raises(CaptureError, match="snoop file"):
                list(read_packets([file]))
            continue
        windows = list(read_packets([file]))
        assert problems(windows) == []
        counted[file.name] = len(rows(windows))
        assert rows(list(read_packets([file], window_bytes=1))) == rows(windows)
    assert counted["PcapPlusPlus__pcapng-example.pcapng.zst"] == 159
    assert counted["PcapPlusPlus__many_interfaces-1.pcapng"] == 64
    assert counted["wireshark__dns+icmp.pcapng.gz"] == 33
