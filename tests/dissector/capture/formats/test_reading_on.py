"""Files that are joined, or damaged in the middle, are read on at the next packet."""

from __future__ import annotations

import gzip
import io
import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.formats import pcap as pcap_module
from dissector.capture.formats import start_search
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.formats.packet_copier import PacketCopier
from tests.dissector.capture.handmade_packets import enhanced, interface, pcap, section
from tests.kernel_modes import both

compiled_or_not = both(pcap_module, start_search)

S = 1_700_000_000
Row = tuple[int, bytes, int]


def read(data: bytes, window_bytes: int = 1 << 20) -> tuple[list[Row], list[str]]:
    """Return time, bytes and link type of each packet, and the problems."""
    rows: list[Row] = []
    problems: list[str] = []
    for window in read_packets(["-"], stdin=io.BytesIO(data), window_bytes=window_bytes):
        columns = window.time_ns, window.start, window.captured, window.link
        for time_ns, start, captured, link in zip(*map(list, columns), strict=True):
            content = window.data[start : start + captured].tobytes()
            rows.append((int(time_ns), content, int(link)))
        problems += [str(problem) for _, problem in window.problems]
    return rows, problems


def packets(first: int, count: int = 8) -> list[tuple[int, bytes]]:
    """Return packets a second apart, in microseconds."""
    return [
        ((S + number) * 1_000_000 + number, bytes([0x45, number]) * (20 + 13 * number))
        for number in range(first, first + count)
    ]


def micros(first: int, order: str = "<", link: int = 1) -> bytes:
    return pcap(packets(first), magic=0xA1B2C3D4, order=order, link=link)


def nanos(first: int) -> bytes:
    return pcap([(time * 1000, data) for time, data in packets(first)], order=">", link=101)


def longer_headers(first: int) -> bytes:
    return pcap(packets(first), magic=0xA1B2CD34, link=113)


def blocks(first: int, order: str = "<", link: int = 1) -> bytes:
    each = b"".join(enhanced(data, time, order=order) for time, data in packets(first))
    return section(order) + interface(link, order=order) + each


FILES = {
    "pcap": micros(0),
    "pcap, big-endian": micros(10, ">", 113),
    "pcap, ns": nanos(20),
    "pcap, long headers": longer_headers(30),
    "pcapng": blocks(40),
    "pcapng, big-endian": blocks(50, ">", 101),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("first", "second"), [*itertools.product(FILES, FILES)])
def test_joined_files_are_read_one_after_the_other(first: str, second: str) -> None:
    a, b = FILES[first], FILES[second]
    want = read(a)[0] + read(b)[0]
    assert len(want) == 16
    for window_bytes in (1, 700, 1 << 20):
        assert read(a + b, window_bytes) == (want, [])
    assert read(gzip.compress(a) + gzip.compress(b)) == (want, [])


def joints(file: bytes) -> list[int]:
    """Return where the packets of a file begin, and its end."""
    at, starts = (24, []) if file[:4] != section()[:4] else (48, [])
    while at < len(file):
        starts.append(at)
        is_pcap = file[:4] != section()[:4]
        (size,) = struct.unpack_from("<I", file, at + (8 if is_pcap else 4))
        at += size + 16 if is_pcap else size
    return [*starts, at]


HOLES = {
    "zeros": bytes(1000),
    "some zeros": bytes(53),
    "ones": b"\xff" * 300,
    "text": b"not a packet " * 30,
    "a magic number": b"\x0a\x0d\x0d\x0a" * 20,
    "another magic number": b"\xd4\xc3\xb2\xa1" * 20,
}


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_a_hole_is_lost_alone(name: str, hole: str) -> None:
    file, filling = FILES[name], HOLES[hole]
    rows = read(file)[0]
    at = joints(file)[3]
    damaged = file[:at] + filling + file[at:]
    for window_bytes in (1, 200, 1 << 20):
        got, (problem,) = read(damaged, window_bytes)
        assert got == rows
        assert problem.startswith(f"at byte {at}: ")
        assert problem.endswith(f": lost {len(filling):,} bytes")


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_overwritten_packets_are_lost_alone(name: str) -> None:
    file = FILES[name]
    rows, at = read(file)[0], joints(file)
    for first, last in itertools.combinations(range(len(rows) - 3), 2):
        begin, end = at[first] + 3, at[last] - 5
        for filling in (bytes(end - begin), b"\xa5" * (end - begin)):
            got, problems = read(file[:begin] + filling + file[end:])
            assert got == rows[:first] + rows[last:], (first, last)
            assert problems


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_a_broken_length_loses_one_packet(name: str) -> None:
    file = FILES[name]
    rows, at = read(file)[0], joints(file)
    for number in range(len(rows) - 3):
        place = at[number] + (8 if name == "pcap" else 4)
        for size in (1 << 30, 1 << 20, 300_000, 900, 0xFFFFFFFF):
            damaged = file[:place] + struct.pack("<I", size) + file[place + 4 :]
            for window_bytes in (1, 1 << 20):
                got, problems = read(damaged, window_bytes)
                assert got == rows[:number] + rows[number + 1 :], (number, size)
                assert len(problems) == 1


def test_zeros_at_the_end_are_one_problem() -> None:
    for file in (FILES["pcap"], FILES["pcapng"]):
        rows = read(file)[0]
        for size in (16, 4096):
            got, (problem,) = read(file + bytes(size))
            assert got == rows
            assert problem.startswith(f"at byte {len(file)}: ")
            assert problem.endswith(f": lost {size:,} bytes")


def test_many_places_are_reported_in_a_sum() -> None:
    each = [pcap([packet], magic=0xA1B2C3D4)[24:] for packet in packets(0, 200)]
    groups = [b"".join(each[at : at + 4]) for at in range(0, 200, 4)]
    file = FILES["pcap"][:24] + bytes(40).join(groups)
    rows, problems = read(file)
    assert len(rows) == 200
    assert len(problems) == 11
    assert problems[-1] == "39 more damaged places: lost 1,560 bytes"


def test_a_legitimate_packet_longer_than_its_original_length_is_kept() -> None:
    file = pcap([], magic=0xA1B2C3D4)
    for number in range(4):
        file += struct.pack("<IIII", S + number, 0, 30, 0 if number % 2 else 20) + bytes(30)
    assert len(read(file)[0]) == 4
    assert [len(read(file, size)[0]) for size in (1, 50)] == [4, 4]


@given(st.data())
def test_damage_gives_the_same_rows_in_any_windows(data: st.DataObject) -> None:
    file = bytearray(data.draw(st.sampled_from(sorted(FILES.values()))))
    file += data.draw(st.sampled_from(sorted(FILES.values())))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(file) - 1))
        file[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=40))
    if not any(bytes(file).startswith(each[:12]) for each in FILES.values()):
        return
    if len(file) < 24:
        return
    reads = [read(bytes(file), window_bytes) for window_bytes in (1, 333, 1 << 20)]
    assert reads[0] == reads[1] == reads[2]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("first", "second"), [*itertools.product(FILES, FILES)])
def test_exports_of_joined_and_damaged_files(tmp_path: Path, first: str, second: str) -> None:
    file = FILES[first] + b"\xff" * 99 + FILES[second]
    path, out = tmp_path / "in.cap", tmp_path / "out.pcapng"
    path.write_bytes(file)
    want = read(file)[0]
    assert len(want) == 16
    for keep in (slice(None), slice(5, 12), slice(9, None)):
        with out.open("wb") as target:
            copier = PacketCopier([str(path)], target)
            for window in read_packets([path], every_block=True):
                numbers = window.first + np.arange(len(window))
                copier.write(window, np.isin(numbers, np.arange(16)[keep]))
            copier.finish()
        assert read(out.read_bytes()) == (want[keep], [])


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_truncated_files_are_cut_off(name: str) -> None:
    file = FILES[name]
    rows, at = read(file)[0], joints(file)
    for end in range(at[0], len(file), 29):
        got, problems = read(file[:end])
        assert got == rows[: len(got)]
        assert len(got) == sum(each <= end for each in at[1:])
        left = end - at[len(got)]
        text = f"cut off: {left:,} bytes of an incomplete packet"
        assert problems == [f"at byte {at[len(got)]}: {text}"] * (left > 0)
