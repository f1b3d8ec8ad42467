from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.engine.records import record_order
from dissector.engine.records.record_order import PATIENCE_S, RecordOrder
from dissector.engine.tables.column_types import (
    Columns,
    Integers,
    SliceBuffers,
    Slices,
    row_count,
)
from tests.example_counts import examples

NOTHING = np.zeros(0, np.uint8)
LAST = 1 << 40


def records(packets: list[int], first: int = 0) -> Columns:
    """Return records with the numbers of their packets, and values that say which they are."""
    texts = [f"{first + at}:{packet}".encode() for at, packet in enumerate(packets)]
    lengths = np.array([len(text) for text in texts], np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)
    buffers = SliceBuffers(data, NOTHING, NOTHING)
    return {
        "packet": Integers(np.array(packets, np.int64)),
        "value": Slices(np.cumsum(lengths) - lengths, lengths, buffers),
    }


def rows(parts: Iterator[Columns]) -> list[tuple[int, bytes]]:
    return [
        (part["packet"].value(row), part["value"].value(row))
        for part in parts
        for row in range(row_count(part))
    ]


def take(
    order: RecordOrder, packets: list[int], records_from: int, *, is_live: bool = False
) -> list[int]:
    parts = [records(packets)] if packets else []
    found = order.take(parts, records_from, is_live=is_live)
    return [packet for packet, _ in rows(found)]


@given(data=st.data())
@settings(max_examples=examples(100))
def test_records_come_in_the_order_of_packets(data: st.DataObject) -> None:
    """Whatever windows they come in, those of one packet in their order, and none is lost."""
    packets = data.draw(st.lists(st.integers(1, 40), max_size=40))
    windows = []
    while packets:
        size = data.draw(st.integers(1, len(packets)))
        windows.append(sorted(packets[:size]))
        packets = packets[size:]
    order, found, made = RecordOrder(), list[tuple[int, bytes]](), list[tuple[int, bytes]]()
    for at, window in enumerate(windows):
        cut = data.draw(st.integers(0, len(window)))
        columns = [
            records(part, len(made) + before)
            for part, before in ((window[:cut], 0), (window[cut:], cut))
        ]
        made += rows(iter(columns))
        follow = [packet for each in windows[at + 1 :] for packet in each]
        found += rows(order.take(columns, min(follow, default=LAST) - 1))
        if not follow:
            assert len(found) == len(made)
    found += rows(order.drain())
    assert found == sorted(made, key=lambda row: row[0])


def test_records_wait_for_an_earlier_produce_only() -> None:
    order = RecordOrder()
    assert take(order, [3, 5, 9], 4) == [3, 5]
    assert take(order, [], 4) == []
    assert take(order, [7, 12], 9) == [7, 9]
    assert rows(order.drain()) == [(12, b"1:12")]


def test_live_records_wait_for_a_second() -> None:
    now_s = 100.0
    order = RecordOrder(lambda: now_s)
    assert take(order, [3, 9], 4, is_live=True) == [3]
    assert take(order, [], 4, is_live=True) == []
    now_s += PATIENCE_S
    assert take(order, [10], 4, is_live=True) == [9, 10]
    assert take(order, [11], 4, is_live=True) == []
    now_s += PATIENCE_S
    assert take(order, [], 4, is_live=True) == [11]


@pytest.mark.parametrize("limit", ["MAX_WAITING", "MAX_WAITING_BYTES"])
def test_waiting_records_are_bounded(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(record_order, limit, 9)
    order = RecordOrder()
    assert take(order, [10, 11], 2) == []
    assert take(order, list(range(20, 28)), 2) == [10, 11, *range(20, 28)]
