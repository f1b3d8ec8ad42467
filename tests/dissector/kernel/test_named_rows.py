"""Rows with named fields: in numpy, in kernels as Python, and compiled."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.kernel.call import CHECKED
from dissector.kernel.named_rows import dtype_of, row_of, rows_of, table_of
from tests.dissector.kernel import sample_kernels
from tests.dissector.kernel.sample_kernels import Link, Links, Outer, Side, Sums, Totals
from tests.kernel_modes import COMPILED, both

mode = both(sample_kernels)


@dataclass
class CountedTotals(Totals):
    """A row that is made in Python."""

    sent: int
    sequence: int


def tables(lengths: list[int]) -> Links:
    links, others = np.zeros(3, dtype_of(Link)), np.zeros(1, dtype_of(Link))
    links["number"], others["number"] = [1, 2, 3], 9
    totals = np.zeros((), dtype_of(Totals))
    return Links._make((links, others, totals, np.array(lengths, np.int64)))


def test_fields_are_columns_of_numpy() -> None:
    links = np.zeros(2, dtype_of(Link))
    assert links.dtype.names == ("number", "sides", "limits")
    assert links.dtype.itemsize == 8 * (1 + 2 * 2 + 2)
    links["sides"]["sent"][1] = [5, 6]
    assert links.view(np.int64).reshape(2, -1).tolist() == [[0] * 7, [0, 5, 0, 6, 0, 0, 0]]


def test_single_rows_are_read_and_written_in_python() -> None:
    links, totals = np.zeros(2, dtype_of(Link)), np.zeros((), dtype_of(Totals))
    rows_of(links, Link)[1].sides[0].sent += 4
    rows_of(links, Link)[1].limits[1] = 8
    row_of(totals, Totals).sequence = 3
    assert links["sides"]["sent"].tolist() == [[0, 0], [4, 0]]
    assert links["limits"].tolist() == [[0, 0], [0, 8]]
    assert int(totals["sequence"]) == 3
    assert len(rows_of(links, Link)) == 2
    with pytest.raises(AssertionError):
        rows_of(links, Side)


def test_a_table_is_made_of_objects() -> None:
    totals = table_of([CountedTotals(5, 6), CountedTotals(7, 8)], CountedTotals)
    assert totals.tolist() == [(5, 6), (7, 8)]
    assert table_of([], CountedTotals).shape == (0,)


def test_tables_are_pickled() -> None:
    links = np.arange(14).view(dtype_of(Link))
    same = pickle.loads(pickle.dumps(links))
    assert same.dtype == dtype_of(Link)
    assert (same == links).all()


def test_kernels_write_fields(mode: str) -> None:
    made = tables([4, 5, 6, 7, 100])
    assert sample_kernels.send_all(made, 10) == 100 + 7
    links, others, totals, _ = made
    assert links["sides"]["sent"].tolist() == [[4, 0], [0, 0], [6, 0]]
    assert others["sides"]["sent"].tolist() == [[0, 5]]
    assert links["limits"].tolist() == [[10, 0], [10, 0], [10, 0]]
    assert links["sides"]["is_open"].tolist() == [[0, 0], [0, 0], [1, 0]]
    assert totals.tolist() == (15, 3)


@given(st.lists(st.integers(0, 20)), st.integers(0, 60))
def test_python_and_compiled_are_equal(lengths: list[int], limit: int) -> None:
    compiled, python = tables(lengths), tables(lengths)
    left = sample_kernels.send_all(compiled, limit)
    assert left == sample_kernels.send_all.uncompiled(python, limit)
    for one, other in zip(compiled, python, strict=True):
        assert (one == other).all()


def test_a_table_that_is_only_read_may_be_read_only(mode: str) -> None:
    links = np.zeros(2, dtype_of(Link))
    links["number"] = [4, 5]
    links.setflags(write=False)
    assert sample_kernels.sum_links(links, 1) == 9
    if mode == COMPILED:
        totals = np.zeros((), dtype_of(Totals))
        totals.setflags(write=False)
        with pytest.raises(TypeError, match=r"count_row: totals: .*read-only"):
            sample_kernels.count_row(totals)


def test_one_row_is_an_argument(mode: str) -> None:
    totals = np.zeros((), dtype_of(Totals))
    sample_kernels.count_row(totals)
    assert totals.tolist() == (0, 1)


def test_groups_may_hold_groups(mode: str) -> None:
    def sums(*numbers: int) -> Sums:
        return Sums(np.array(numbers), np.zeros((4, 2), np.int64), np.zeros(2, np.bool_))

    outer = Outer(sums(1, 2), sums(30, 40), np.zeros(1, np.int64))
    outer.first.numbers.setflags(write=False)
    assert sample_kernels.add_groups(outer) == 4
    assert outer.second.numbers.tolist() == [31, 42]
    assert outer.total.tolist() == [73]


@pytest.mark.parametrize(
    "table",
    [
        np.zeros(2, dtype_of(Side)),
        np.zeros((2, 7), np.int64),
        np.zeros(14, np.int64),
        np.zeros((2, 1), dtype_of(Link)),
        np.zeros((), dtype_of(Link)),
        np.zeros(4, dtype_of(Link))[::2],
        np.zeros(2, [("numeral", "q"), ("sides", dtype_of(Side), 2), ("limits", "q", 2)]),
    ],
)
def test_other_arrays_are_errors(table: object, mode: str) -> None:
    if mode != COMPILED:
        pytest.skip("as Python, only the first use of a wrong array fails")
    with pytest.raises(TypeError, match="sum_links: links"):
        sample_kernels.sum_links(table, 0)


@pytest.mark.parametrize("at", [2, -1])
def test_the_checked_build_checks_rows(at: int, mode: str) -> None:
    if mode != COMPILED or not os.environ.get(CHECKED):
        pytest.skip("only the checked build notices")
    with pytest.raises(IndexError, match="an index is outside its array, line"):
        sample_kernels.sum_links(np.zeros(2, dtype_of(Link)), at)
