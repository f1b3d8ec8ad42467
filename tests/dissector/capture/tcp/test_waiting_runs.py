"""The tree of runs of waiting bytes, against a sorted list and against the reference."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.capture.tcp.segment_kernel import process_segments
from dissector.capture.tcp.tcp_rows import StateArrays
from dissector.capture.tcp.waiting_rows import WaitingSide
from dissector.capture.tcp.waiting_runs import add_run, find_run, remove_run
from dissector.kernel.named_rows import in_memory, row_of
from tests.dissector.capture.stage_reading import Reading
from tests.example_counts import examples
from tests.kernel_modes import COMPILED, running
from tests.tcp_captures import Wire, pcap_file

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 300)), max_size=150)


@given(STEPS)
@settings(max_examples=examples(100))
def test_runs_are_found_after_additions_and_removals(steps: list[tuple[bool, int]]) -> None:
    table = ConnectionTable()
    table.counts["needed_segments"] = 400
    table.reserve()
    arrays: Iterable[Any] = table.arrays
    state = StateArrays._make(
        in_memory(each) if each.dtype.fields else each.tolist() for each in arrays
    )
    memory = np.zeros((), [(name, np.int64) for name in WaitingSide.__annotations__])
    side, known = row_of(memory, WaitingSide), dict[int, int]()
    for is_added, start in steps:
        if is_added and start not in known:
            known[start] = add_run(state, side, find_run(state, side, start), start, start + 1)
        elif not is_added and start in known:
            remove_run(state, side, known.pop(start))
        starts = sorted(known)
        for seq in (start - 1, start, start + 1, 1000):
            at = bisect_right(starts, seq)
            assert find_run(state, side, seq) == (known[starts[at - 1]] if at else 0)
        listed, run = list[int](), side.first
        while run:
            listed.append(state.runs[run].start)
            run = state.runs[run].after
        assert listed == starts
        assert side.runs == len(starts)


@pytest.mark.parametrize("order", ["backward", "random", "even first"])
def test_thousands_of_one_byte_segments_in_any_order(order: str) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    head = len(wire.packets)
    for number in range(3000):
        connection.send(0, bytes([number % 256]))
    packets = wire.packets[head:]
    orders = {
        "backward": packets[::-1],
        "random": random.Random(1).sample(packets, len(packets)),
        "even first": packets[::2] + packets[1::2],
    }
    data = pcap_file(replace(each, time_ns=0) for each in [*wire.packets[:head], *orders[order]])
    with running(COMPILED, process_segments):
        reading = Reading(data, 20_000)
    assert reading.streams[(0, 0)] == [bytes(number % 256 for number in range(3000))]
    assert reading.rows == Reading(data, one_by_one=True).rows
