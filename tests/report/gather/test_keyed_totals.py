"""Totals by key: equal keys become one row, in order."""

from __future__ import annotations

from collections import Counter

import numpy as np

from report.gather.keyed_totals import KeyedTotals


def test_parts_are_added_up_as_one() -> None:
    random = np.random.default_rng(5)
    totals, counts, highest = KeyedTotals("count", "max_ns"), Counter[int](), dict[int, int]()
    for _ in range(6):
        key, most = random.integers(0, 40, 30), random.integers(0, 1_000, 30)
        totals.add({"key": key, "count": np.ones(30, np.int64), "max_ns": most})
        counts.update(key.tolist())
        for each, value in zip(key.tolist(), most.tolist(), strict=True):
            highest[each] = max(highest.get(each, 0), value)
        if random.integers(2):
            totals.merged()
    merged = totals.merged()
    assert merged["key"].tolist() == sorted(counts)
    assert dict(zip(merged["key"].tolist(), merged["count"].tolist(), strict=True)) == counts
    assert merged["max_ns"].tolist() == [highest[each] for each in sorted(highest)]
    assert totals.added == 0


def test_rows_whose_keys_become_equal_are_one() -> None:
    totals = KeyedTotals("count")
    totals.add({"key": np.array([7, 2, 5]), "count": np.array([1, 10, 100])})
    totals.change_keys(lambda key: -(key // 5))
    assert {name: each.tolist() for name, each in totals.merged().items()} == {
        "key": [-1, 0],
        "count": [101, 10],
    }


def test_without_rows() -> None:
    totals = KeyedTotals("count")
    totals.change_keys(lambda key: key + 1)
    assert len(totals) == 0
    assert totals.merged()["count"].tolist() == []
