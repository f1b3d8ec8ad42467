"""Keys identify connections in both directions, with and without compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.columns import Segments
from dissector.capture.hashing import SECRET
from dissector.kernel.named_rows import dtype_of
from pipeline.split import connection_keys
from pipeline.split.connection_keys import (
    ConnectionCounts,
    CountState,
    KeySet,
    Traffic,
    TrafficTable,
    key_of,
    part_of,
)

WORDS = st.integers(-(2**63), 2**63 - 1)
End = tuple[int, int, int]
ENDS = st.tuples(WORDS, WORDS, st.integers(0, 65535))


def segments(rows: list[tuple[tuple[int, int, int], tuple[int, int, int], int]]) -> Segments:
    """Return segments between endpoints, with these lengths."""
    nothing = np.zeros(len(rows), np.int64)
    small = np.zeros(len(rows), np.int32)

    def address(side: int) -> np.ndarray:  # type: ignore[type-arg]
        found = np.array([row[side][:2] for row in rows], np.int64).reshape(-1, 2)
        return found.view(np.uint64)

    return Segments(
        data=np.zeros(0, np.uint8),
        packet=np.arange(len(rows)),
        time_ns=nothing,
        network=small,
        source=address(0),
        target=address(1),
        source_port=np.array([row[0][2] for row in rows], np.int32),
        target_port=np.array([row[1][2] for row in rows], np.int32),
        seq=nothing,
        ack=nothing,
        flags=small,
        start=nothing,
        length=nothing,
        captured=np.array([row[2] for row in rows], np.int64),
        clock_ns=nothing,
    )


@given(ENDS, ENDS)
def test_both_directions_share_a_key(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    key = key_of(*one, *other)
    assert key == key_of(*other, *one)
    assert 0 < key < 2**63
    if one[2] != other[2] and one[:2] != other[:2]:
        # Swapped ports are another connection.
        assert key != key_of(*one[:2], other[2], *other[:2], one[2])


def many(count: int) -> Segments:
    order = np.random.default_rng(1)
    numbers = order.integers(0, 3000, (count, 2)).tolist()
    return segments(
        [((0, 0xFFFF0A000001 + a % 7, 1000 + a), (-b, -(b << 40), 9092), a % 5) for a, b in numbers]
    )


@pytest.mark.long
def test_compiled_counts_equal_those_of_python() -> None:
    some, tally = many(5000), ConnectionCounts()
    tally.add(some)
    expected: dict[int, list[int]] = {}
    columns = [column.tolist() for column in connection_keys.endpoint_columns(some)]
    for source, port, target, to_port, captured in zip(*columns, strict=True):
        row = expected.setdefault(key_of(*source, port, *target, to_port), [0, 0])
        row[0] += 1
        row[1] += captured
    keys, traffic = tally.keys_and_traffic()
    assert keys.tolist() == sorted(expected)
    assert [list(each) for each in traffic.tolist()] == [expected[key] for key in keys.tolist()]
    compiled = TrafficTable(np.zeros(1 << 14, np.int64), np.zeros(1 << 14, dtype_of(Traffic)))
    state = np.zeros((), dtype_of(CountState))
    endpoints = connection_keys.endpoint_columns(some)
    connection_keys.count_segments(endpoints, compiled, SECRET, state)
    assert state.tolist() == (5000, len(keys))
    slots = [compiled.keys.tolist().index(key) for key in keys.tolist()]
    assert (compiled.traffic[slots] == traffic).all()


def test_chosen_keys_are_assigned_to_shards() -> None:
    some, tally = many(4000), ConnectionCounts()
    tally.add(some)
    chosen = tally.keys_and_traffic()[0][::3]
    columns = [column.tolist() for column in connection_keys.endpoint_columns(some)]
    own = [key_of(*a, port, *b, to) for a, port, b, to, _ in zip(*columns, strict=True)]
    expected = [part_of(key, 5) if key in set(chosen.tolist()) else -1 for key in own]
    for _ in range(3):  # as Python at first
        into, sums = KeySet(chosen).assign_parts(some, 5)
        assert into.tolist() == expected
        for part in range(5):
            mine = into == part
            assert sums[part].tolist() == (mine.sum(), some.captured[mine].sum())
    into, sums = KeySet(chosen[:0]).assign_parts(some, 5)
    assert (into == -1).all()
    assert not sums["segments"].any()
