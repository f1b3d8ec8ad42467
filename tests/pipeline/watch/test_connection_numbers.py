"""Connections have the numbers of one process across batches, also after retries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.columns import Int64s
from pipeline.watch.connection_numbers import FOLDER, assign_numbers, read_numbers


def _ints(*numbers: int) -> Int64s:
    return np.array(numbers, np.int64)


def _pairs(path: str) -> list[tuple[int, int]]:
    firsts, numbers = read_numbers(path)
    return list(zip(firsts.tolist(), numbers.tolist(), strict=True))


def test_numbers_follow_first_packets(tmp_path: Path) -> None:
    out = str(tmp_path)
    assert _pairs(assign_numbers(out, 0, _ints(7, 0), _ints())) == [(0, 0), (7, 1)]
    # A connection still has rows in the batch of its end.
    assert _pairs(assign_numbers(out, 1, _ints(11), _ints(0, 11))) == [(0, 0), (7, 1), (11, 2)]
    assert _pairs(assign_numbers(out, 2, _ints(30, 20), _ints())) == [(7, 1), (20, 3), (30, 4)]


def test_a_retried_batch_gives_the_same_numbers(tmp_path: Path) -> None:
    out = str(tmp_path)
    assign_numbers(out, 0, _ints(0, 5), _ints(0))
    assign_numbers(out, 1, _ints(9), _ints(5))
    first = _pairs(assign_numbers(out, 2, _ints(12), _ints(9)))
    assert _pairs(assign_numbers(out, 2, _ints(12), _ints(9))) == first == [(9, 2), (12, 3)]
    assert len(list((tmp_path / FOLDER).iterdir())) == 2


@settings(max_examples=20)
@given(st.data())
def test_only_open_connections_are_kept(data: st.DataObject) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as out:
        open_ones: set[int] = set()
        begun: list[int] = []
        for batch in range(4):
            news = list(range(len(begun), len(begun) + data.draw(st.integers(0, 4))))
            begun += news
            open_ones |= {*news}
            over = data.draw(st.sets(st.sampled_from(sorted(open_ones)))) if open_ones else set()
            firsts = (_ints(*(10 * each for each in numbers)) for numbers in (news, over))
            path = assign_numbers(out, batch, *firsts)
            assert _pairs(path) == [(10 * each, each) for each in sorted(open_ones)]
            open_ones -= over
