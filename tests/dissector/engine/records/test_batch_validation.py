"""Validation of many `records` fields at once."""

from __future__ import annotations

import random

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
from dissector.engine.records.batch_validation import invalid_fields
from dissector.protocol.records import Record, build_records, new_batch, parse_records
from tests.dissector.protocol.records.record_values import FIELDS
from tests.kernel_modes import both

mode = both(batch_scanner, checksum, legacy_decoder, decompressor, record_decoder)

WRITTEN = FIELDS.map(build_records)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Fields as written by producers and brokers, some truncated, some with changed bytes."""
    data = bytearray(draw(WRITTEN))
    for _ in range(draw(st.integers(0, 2))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


def laid_out(fields: list[bytes], split: int) -> tuple[np.ndarray, ...]:
    """Put some fields into `data` and the others into `held`."""
    data, held = b"".join(fields[:split]), b"".join(fields[split:])
    lengths = np.array([len(each) for each in fields], np.int64)
    starts = np.cumsum(lengths) - lengths
    return np.frombuffer(data, np.uint8), np.frombuffer(held, np.uint8), starts, lengths


@pytest.mark.thinned(2)
@given(st.lists(damaged(), max_size=4), st.integers(0, 4), st.lists(st.booleans(), min_size=4))
def test_the_verdict_equals_that_of_the_python_reader(
    fields: list[bytes], split: int, cut: list[bool]
) -> None:
    may_be_cut = np.array(cut[: len(fields)], np.bool_)
    wrong = invalid_fields(*laid_out(fields, split), may_be_cut)
    expected = [
        any(batch.problems for batch in parse_records(each, may_be_cut=may))
        for each, may in zip(fields, cut, strict=False)
    ]
    assert wrong.tolist() == expected


LARGE = [
    new_batch(
        [Record(value=random.Random(n).randbytes(60) * (n % 3 + 1)) for n in range(90)], codec=codec
    ).to_bytes()
    for codec in ("lz4", "zstd", "gzip")
]


@given(st.lists(st.tuples(st.sampled_from(LARGE), st.integers(0, 3000), st.booleans()), max_size=5))
def test_large_payloads(damages: list[tuple[bytes, int, bool]]) -> None:
    fields = []
    for batch, at, torn in damages:
        data = bytearray(batch)
        if torn:
            data[21 + at] ^= 1
        fields.append(bytes(data))
    wrong = invalid_fields(*laid_out(fields, 2), np.zeros(len(fields), np.bool_))
    assert wrong.tolist() == [torn for _, _, torn in damages]
