"""Exchanges by keys: in order, then the last one repeatedly."""

from __future__ import annotations

from serve.matching.exchange_index import ExchangeIndex


def test_exchanges_come_in_order_and_then_the_last_repeats() -> None:
    index = ExchangeIndex()
    for number in (4, 7):
        index.add(number, ["a"])
    assert [index.take(["a"]) for _ in range(3)] == [4, 7, 7]
    assert index.take(["b"]) is None


def test_the_first_key_with_an_exchange_decides() -> None:
    index = ExchangeIndex()
    index.add(1, [("x", "client"), "x"])
    index.add(2, [("x", "other"), "x"])
    assert index.take([("x", "other"), "x"]) == 2
    assert index.take([("x", "third"), "x"]) == 1
    assert index.take([("x", "client"), "x"]) == 1
    assert index.next_unused("x") is None


def test_an_exchange_is_used_once_across_keys() -> None:
    index = ExchangeIndex()
    index.add(1, ["a", "b"])
    index.add(2, ["b"])
    index.use(1)
    assert index.is_used(1)
    assert index.next_unused("b") == 2
