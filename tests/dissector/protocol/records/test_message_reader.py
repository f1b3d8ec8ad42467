from __future__ import annotations

import struct
import zlib

import pytest

from dissector.errors import Problem
from dissector.protocol.records import LegacyBatch, Limits, parse_records
from dissector.protocol.records.compression import compress


def message(
    value: bytes | None,
    *,
    offset: int = 0,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
    key: bytes | None = None,
) -> bytes:
    """Encode a message by hand, independently of the tested code."""
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp)
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(inner: bytes, *, offset: int, magic: int = 1, codec: int = 1, log: int = 0) -> bytes:
    value = compress(codec, inner, magic=magic)
    return message(value, offset=offset, magic=magic, attributes=codec | log, timestamp=5000)


def only(data: bytes, **kwargs: Limits) -> LegacyBatch:
    (batch,) = parse_records(data, **kwargs)
    assert isinstance(batch, LegacyBatch)
    return batch


def facts(batch: LegacyBatch) -> list[tuple[int, int | None, bytes | None]]:
    return [(record.offset, record.timestamp, record.value) for record in batch.records]


@pytest.mark.parametrize("value", [b"v", b"", None])
@pytest.mark.parametrize("key", [b"k", b"", None])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message(magic: int, key: bytes | None, value: bytes | None) -> None:
    batch = only(message(value, key=key, offset=9, magic=magic))
    assert batch.problems == []
    (record,) = batch.records
    assert (record.offset, record.key, record.value, record.magic) == (9, key, value, magic)
    assert record.timestamp == (1000 if magic else None)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_magic_1_offsets_are_relative_to_the_wrapper(codec: int) -> None:
    inner = message(b"a") + message(b"b", offset=1) + message(b"c", offset=5)
    batch = only(wrapper(inner, offset=105, codec=codec))
    assert batch.problems == []
    assert facts(batch) == [(100, 1000, b"a"), (101, 1000, b"b"), (105, 1000, b"c")]
    assert [record.inner_offset for record in batch.records] == [0, 1, 5]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_magic_0_offsets_are_absolute(codec: int) -> None:
    inner = message(b"a", magic=0, offset=100) + message(b"b", magic=0, offset=104)
    batch = only(wrapper(inner, offset=104, magic=0, codec=codec))
    assert batch.problems == []
    assert facts(batch) == [(100, None, b"a"), (104, None, b"b")]


def test_a_wrapper_with_offset_0_keeps_offsets() -> None:
    inner = message(b"a") + message(b"b", offset=1)
    assert [record.offset for record in only(wrapper(inner, offset=0)).records] == [0, 1]


def test_append_time_of_the_wrapper_applies_to_its_messages() -> None:
    batch = only(wrapper(message(b"a") + message(b"b"), offset=1, log=0x08))
    assert batch.timestamp_type == "LogAppendTime"
    assert [record.timestamp for record in batch.records] == [5000, 5000]


def test_two_levels_of_wrappers_are_read_and_a_third_is_not() -> None:
    first = wrapper(message(b"a") + message(b"b", offset=1), offset=1)
    second = wrapper(first, offset=11)
    batch = only(second)
    assert batch.problems == []
    assert facts(batch) == [(10, 1000, b"a"), (11, 1000, b"b")]
    batch = only(wrapper(second, offset=11))
    assert [record.value for record in batch.records] != [b"a", b"b"]
    path = "records[0].records[0].records[0]"
    assert batch.problems == [Problem("message sets are nested deeper than 2", path, 26, "limit")]


def test_a_wrapper_without_a_value_is_a_message() -> None:
    batch = only(message(None, attributes=1))
    assert (batch.problems, [record.value for record in batch.records]) == ([], [None])


def test_sums_of_offsets_stay_in_64_bits() -> None:
    inner = message(b"a", offset=(1 << 63) - 1) + message(b"b", offset=-(1 << 63))
    batch = only(wrapper(inner, offset=(1 << 63) - 1))
    assert all(-(1 << 63) <= record.offset < 1 << 63 for record in batch.records)


def damaged(data: bytes, at: int, value: str) -> bytes:
    """Replace bytes and correct the CRC."""
    raw = bytes.fromhex(value)
    data = data[:at] + raw + data[at + len(raw) :]
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:])) + data[16:]


PLAIN = message(b"value", key=b"key")  # key length at 26, value length at 33

BAD = [
    (damaged(PLAIN, 26, "00000010"), "length 16 but 12 bytes are left in the message", ".key", 26),
    (damaged(PLAIN, 26, "fffffffe"), "length -2 but 12 bytes are left in the message", ".key", 26),
    (damaged(PLAIN, 26, "0000000a"), "message ends early", ".value", 40),
    (damaged(PLAIN, 33, "7fffffff"), "length 2147483647 but 5 bytes are left in the message",
     ".value", 33),
    (damaged(PLAIN, 33, "00000004"), "1 bytes left after the value", "", 41),
    (PLAIN[:12] + bytes(4) + PLAIN[16:],
     f"CRC-32 is 0x00000000, computed {zlib.crc32(PLAIN[16:]):#010x}", ".crc", 12),
    (message(b"junk", attributes=1), "gzip: incorrect header check", ".value", 26),
    (message(b"junk", attributes=6), "codec 6 is unknown", ".value", 26),
    (message(b"", attributes=3), "no lz4 data", ".value", 26),
    (wrapper(b"", offset=1), "wrapper holds no messages", ".records", 26),
    (wrapper(PLAIN[:-1], offset=1), "message is cut off, or its size is wrong", ".records[0]", 26),
    (wrapper(PLAIN + PLAIN[:9], offset=1),
     f"message is cut off, or its size is wrong (byte {len(PLAIN)} of the decompressed messages)",
     ".records[1]", 26),
    (wrapper(PLAIN[:16] + b"\x02" + PLAIN[17:], offset=1), "magic 2 in a message set",
     ".records[0]", 26),
    (wrapper(message(b"", offset=7), offset=3), "wrapper has offset 3, its last message 7",
     ".offset", 26),
    (wrapper(PLAIN[:12] + bytes(4) + PLAIN[16:], offset=1),
     f"CRC-32 is 0x00000000, computed {zlib.crc32(PLAIN[16:]):#010x}"
     " (byte 12 of the decompressed messages)", ".records[0].crc", 26),
]  # fmt: skip


@pytest.mark.parametrize(("data", "what", "path", "position"), BAD)
def test_a_bad_message_is_kept_with_its_problem(
    data: bytes, what: str, path: str, position: int
) -> None:
    batch, after = parse_records(data + PLAIN)
    kind = "length" if what.startswith(("length ", "message ends early")) else ""
    assert batch.problems == [Problem(what, f"records[0]{path}", position, kind)]
    assert after.problems == []
    assert batch.to_bytes() == data


def test_a_truncated_wrapper_gives_its_whole_messages() -> None:
    inner = b"".join(message(bytes((n,)) * 900, offset=n) for n in range(100))
    value = compress(1, inner)
    batch = only(message(value[:-20], attributes=1))
    assert 0 < len(batch.records) < 100
    assert batch.problems == [Problem("gzip data ends early", "records[0].value", 26)]


def test_a_too_small_inner_message_ends_the_set() -> None:
    small = struct.pack(">qi", 0, 5) + bytes(20)
    batch = only(wrapper(PLAIN + small, offset=1))
    assert len(batch.records) == 1
    assert [problem.path for problem in batch.problems] == ["records[0].records[1]"]


def test_the_limit_of_records_applies_inside_wrappers() -> None:
    data = wrapper(b"".join(message(b"", offset=n) for n in range(10)), offset=9)
    batch = only(data, limits=Limits(max_records=5))
    assert len(batch.records) == 4  # the wrapper itself is one
    assert "more than 5 records" in batch.problems[0].what


def test_a_bomb_wrapped_in_a_small_message() -> None:
    bomb = message(compress(1, bytes(8 << 20)), attributes=1)
    batch = only(bomb, limits=Limits(max_decompressed_bytes=1 << 20))
    assert batch.records == []
    assert "gives more than" in batch.problems[0].what
