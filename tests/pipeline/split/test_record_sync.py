"""The first record of a range is found among its bytes."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import pytest

from dissector.capture.formats.pcap import PcapReader
from dissector.capture.formats.start_search import find_start
from pipeline.split.byte_ranges import UNKNOWN, Range
from pipeline.split.record_sync import CHAIN, sync_to_record

FORMS = {
    "<us": ("<", 0xA1B2C3D4, 999_999, b""),
    ">us": (">", 0xA1B2C3D4, 999_999, b""),
    "<ns": ("<", 0xA1B23C4D, 999_999_999, b""),
    ">ns": (">", 0xA1B23C4D, 999_999_999, b""),
    "<long headers": ("<", 0xA1B2CD34, 999_999, bytes(8)),
}


def capture(form: str, sizes: list[int], seed: int = 0) -> tuple[bytes, list[int]]:
    """Return a file with packets of random bytes, and where its records begin."""
    order, magic, fraction, more = FORMS[form]
    luck = random.Random(seed)
    file = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, 1)
    starts = []
    for number, size in enumerate(sizes):
        starts.append(len(file))
        file += struct.pack(f"{order}IIII", 1_700_000_000 + number, fraction, size, size) + more
        file += luck.randbytes(size)
    return file, starts


def guess(file: bytes, start: int, end: int | None = None, look_bytes: int = 1 << 20) -> int:
    each = Range(1, "a", start, end, proven=False)
    return sync_to_record(io.BytesIO(file), file[:24], each, look_bytes)


@pytest.mark.parametrize("form", FORMS)
def test_the_next_record_is_found_from_any_byte(form: str) -> None:
    file, starts = capture(form, [60, 1, 1500, 7, 80, 900, 33, 60, 61, 62])
    for at in range(24, len(file)):
        after = [start for start in starts if start >= at]
        assert guess(file, at) == (after[0] if after else UNKNOWN)


def test_bytes_are_searched_in_steps() -> None:
    file, starts = capture("<us", [5000] * 30)
    assert guess(file, starts[3] + 1, look_bytes=64) == starts[4]
    assert guess(file, starts[3] + 1, starts[4], look_bytes=64) == UNKNOWN
    assert guess(file, starts[-1] + 1, look_bytes=64) == UNKNOWN


def test_zeros_are_no_records() -> None:
    file, _ = capture("<us", [60])
    assert guess(file + bytes(5000), len(file)) == UNKNOWN


def test_a_capture_inside_a_packet_gives_a_wrong_guess() -> None:
    """Hence guesses need proof."""
    inner, inner_starts = capture("<us", [40] * CHAIN)
    file, starts = capture("<us", [60, len(inner), 60])
    at = starts[1] + 16
    file = file[:at] + inner + file[at + len(inner) :]
    assert guess(file, starts[1] + 1) == at
    assert guess(file, at + 1) == at + inner_starts[0]


def test_python_and_compiled_kernels_agree() -> None:
    file, starts = capture("<us", [200] * 20, seed=3)
    data = np.frombuffer(file, np.uint8)
    for at in (24, 25, starts[7] + 3, starts[-1] + 1):
        arguments = data[at:], 0, PcapReader(file[:24]).form, CHAIN, 1
        assert find_start(*arguments) == find_start.uncompiled(*arguments)
