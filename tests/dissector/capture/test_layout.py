from __future__ import annotations

from dataclasses import fields
from functools import reduce

from dissector.capture import layout
from dissector.capture.connections import ENDS, Side


def test_columns_follow_one_another() -> None:
    names = ["A_HIGH", "A_LOW", "B_HIGH", "B_LOW", "PORTS"]
    names += ["FIRST_PACKET", "FIRST_NS", "LAST_NS", "STATE"]
    assert [getattr(layout, name) for name in names] == list(range(layout.SIDES))
    names = ["NEXT", "FIRST", "ACKED", "ACKED_NS", "ACKED_PACKET", "PACKETS", "BYTES", "MARKS"]
    assert [getattr(layout, name) for name in names] == list(range(layout.SIDE))
    assert layout.COLUMNS == layout.SIDES + 2 * layout.SIDE


def test_no_bit_means_two_things() -> None:
    state = [layout.AWAKE, layout.ORIENTED, layout.SYN_SEEN, layout.ENDED]
    assert sum(state) == reduce(int.__or__, state) < 1 << layout.NETWORK_AT
    assert len(ENDS) - 1 == layout.ENDED >> layout.ENDED_AT
    marks = [layout.ANCHORED, layout.HAS_ACKED, layout.HAS_ISN, layout.FINISHED]
    assert sum(marks) == reduce(int.__or__, marks) < 1 << layout.FEW_AT


def test_counts_are_named_as_those_of_a_side() -> None:
    names = [field.name for field in fields(Side)]
    assert names[layout.CUT_BYTES - layout.GAPS] == "cut_bytes"
    assert names[-layout.GAPS] == "retransmitted_segments"
    assert layout.COUNTS == layout.GAPS + 1
