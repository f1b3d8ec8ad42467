"""Messages in packet order, as numbers."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.reading import packet_order
from dissector.engine.reading.packet_order import OrderedBatch, PacketOrderBuffer
from dissector.engine.tables.exchange_table import NONE

PACKETS = st.none() | st.integers(0, 30)
WINDOWS = st.lists(st.lists(st.tuples(PACKETS, PACKETS), max_size=5), max_size=5)

Message = tuple[int, str, int, int]
"""Packet, window, row and side."""


def flat(batches: Iterator[OrderedBatch[str]]) -> list[Message]:
    out = []
    for each in batches:
        columns = each.packet, each.window, each.row, each.side
        for packet, window, row, side in zip(*(one.tolist() for one in columns), strict=True):
            out.append((packet, each.windows[window], row, side))
    return out


def taken(rows: list[tuple[int | None, int | None]]) -> np.ndarray:
    numbers = [[NONE if each is None else each for each in row] for row in rows]
    return np.array(numbers, np.int64).reshape(-1, 2)


@given(WINDOWS, st.integers(0, 30), st.integers(1, 4))
def test_messages_come_in_packet_order(
    windows: list[list[tuple[int | None, int | None]]], low_water: int, piece: int
) -> None:
    messages: list[Message] = [
        (packet, f"w{number}", row, side)
        for number, rows in enumerate(windows)
        for row, both in enumerate(rows)
        for side, packet in enumerate(both)
        if packet is not None
    ]
    made = PacketOrderBuffer[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packet_order, "BATCH_MESSAGES", piece)
        for number, rows in enumerate(windows):
            assert flat(made.add(f"w{number}", taken(rows))) == []
        ready = flat(made.ready(low_water))
        assert ready == sorted(each for each in messages if each[0] < low_water)
        assert ready + flat(made.drain()) == sorted(messages)
    assert flat(made.drain()) == []


def test_number_of_waiting_messages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_order, "MAX_WAITING", 3)
    made = PacketOrderBuffer[str]()
    assert flat(made.add("a", taken([(5, 9), (1, None)]))) == []
    assert flat(made.add("b", taken([(3, 4)]))) == [(1, "a", 1, 0), (3, "b", 0, 0)]
    assert flat(made.drain()) == [(4, "b", 0, 1), (5, "a", 0, 0), (9, "a", 0, 1)]


class Window(str):
    """A window with weak references."""


def test_windows_without_waiting_messages_are_released() -> None:
    made = PacketOrderBuffer[str]()
    kept: weakref.WeakSet[Window] = weakref.WeakSet()
    for number in range(5):
        window = Window(f"w{number}")
        kept.add(window)
        assert flat(made.add(window, taken([(number, 9 if number == 2 else None)]))) == []
        assert flat(made.ready(number + 1)) == [(number, window, 0, 0)]
    del window
    assert list(kept) == ["w2"]
