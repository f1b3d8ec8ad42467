"""Validation of message sets of many fields; their columns are in `test_record_windows`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.records import (
    batch_scanner,
    checksum,
    decompressor,
    legacy_decoder,
    record_decoder,
)
from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import INVALID, UNDECIDED, VALID
from dissector.protocol.records import Record, build_records, new_message_set, parse_records
from tests.dissector.protocol.records.record_values import BATCHES, CODECS
from tests.dissector.protocol.records.sets import damaged_sets, wrap
from tests.kernel_modes import both

mode = both(batch_scanner, checksum, legacy_decoder, decompressor, record_decoder)

THREE = [Record(timestamp=5, key=b"k", value=b"value" * 5), Record(value=None), Record(value=b"")]


def states(*fields: bytes, split: int = 1, cut: bool = True) -> list[int]:
    data, held = (
        np.frombuffer(b"".join(some), np.uint8) for some in (fields[:split], fields[split:])
    )
    length = np.array([len(each) for each in fields], np.int64)
    may_be_cut = np.full(len(fields), cut)
    start = np.cumsum(length) - length
    found = find_batches(data, held, start, length, may_be_cut, message_sets=True)
    for these in decompressor.iter_payloads(data, held, found, np.arange(len(found))):
        record_decoder.check_records(data, held, found, these)
    return found.state.tolist()


def expected(field: bytes, cut: bool = True) -> int:
    return INVALID if any(each.problems for each in parse_records(field, may_be_cut=cut)) else VALID


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_message_sets_of_producers_are_valid(codec: str, magic: int) -> None:
    field = build_records(new_message_set(THREE, magic=magic, codec=codec, base_offset=9))
    assert states(field, field * 2, field[:-1]) == [VALID] * 3
    assert states(field, field[:-1], field + b"\0", cut=False) == [VALID, INVALID, INVALID]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_nested_wrappers_are_left(codec: str, magic: int) -> None:
    inside = build_records(new_message_set(THREE[:1], magic=magic))
    once = wrap(inside, codec, magic)
    twice = wrap(once + once, codec, magic)
    other = wrap(build_records(new_message_set(THREE[:1], magic=1 - magic)), codec, magic)
    left, wrong = [twice, other], [wrap(b"", codec, magic), wrap(inside[:-1], codec, magic)]
    assert states(once, *left, *wrong) == [VALID, UNDECIDED, UNDECIDED, INVALID, INVALID]
    assert list(map(expected, (once, *left, *wrong))) == [VALID, VALID, VALID, INVALID, INVALID]


OFFSETS = st.sampled_from((0, 1, 2, 5, -1, -(1 << 63), (1 << 63) - 1))


@given(st.lists(OFFSETS, min_size=3, max_size=3), st.integers(0, 1))
def test_offsets_of_wrappers(offsets: list[int], magic: int) -> None:
    inside = new_message_set(THREE[:1], magic=magic)[0]
    messages = b"".join(replace(inside, offset=each).to_bytes() for each in offsets[:2])
    once = wrap(messages, "snappy", magic, offsets[2])
    assert states(once) == [expected(once)]


@pytest.mark.thinned(2)
@given(st.lists(damaged_sets(), max_size=4), st.integers(0, 4), st.booleans())
def test_the_verdict_equals_that_of_the_python_reader(
    fields: list[bytes], split: int, cut: bool
) -> None:
    fields = [each for each in fields if each]
    for state, field in zip(states(*fields, split=split, cut=cut), fields, strict=True):
        assert state in (expected(field, cut), UNDECIDED)


@given(BATCHES)
def test_batches_of_magic_2_may_follow(batch: object) -> None:
    field = build_records([*new_message_set(THREE, codec="gzip"), batch])  # type: ignore[list-item]
    assert states(field, field[:-1]) == [VALID, VALID]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_beyond_the_limit_are_left_to_python(
    codec: str, magic: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = build_records(new_message_set(THREE, magic=magic, codec=codec))
    many = build_records(new_message_set(THREE, magic=magic))
    monkeypatch.setattr(batch_scanner, "MAX_RECORDS", batch_scanner.MAX_WRAPPED_MESSAGES)
    assert states(field, many, field) == [UNDECIDED, VALID, UNDECIDED]
    monkeypatch.setattr(batch_scanner, "MAX_RECORDS", 2)
    assert states(field, many, many[: len(many) * 2 // 3]) == [UNDECIDED, UNDECIDED, VALID]


def test_without_compiled_kernels_they_are_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(record_decoder.count_messages), "compiled", None)
    assert states(build_records(new_message_set(THREE))) == [UNDECIDED]
