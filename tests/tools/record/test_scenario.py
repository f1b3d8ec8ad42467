from __future__ import annotations

import itertools

import pytest

from tools.record.scenario import all_scenarios, orders, until


def test_scenarios_are_grouped_by_cluster() -> None:
    clusters = [each.cluster for each in all_scenarios()]
    changes = sum(left != right for left, right in itertools.pairwise(clusters))
    assert changes == len(set(clusters)) - 1


def test_until_returns_the_true_value() -> None:
    answers = iter([None, 0, "yes"])
    assert until("a yes", lambda: next(answers)) == "yes"


def test_until_fails_with_its_description() -> None:
    with pytest.raises(TimeoutError, match="waited 0 s for a miracle"):
        until("a miracle", lambda: None, patience_s=0)


def test_orders_are_reproducible() -> None:
    assert list(orders(3, first=2)) == list(orders(5))[2:]
