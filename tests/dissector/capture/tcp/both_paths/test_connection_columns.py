from __future__ import annotations

from dataclasses import fields
from functools import reduce

from dissector.capture.tcp.both_paths import connection_columns
from dissector.capture.tcp.connections import END_REASONS, Side


def test_columns_are_consecutive() -> None:
    names = ["A_HIGH", "A_LOW", "B_HIGH", "B_LOW", "PORTS"]
    names += ["FIRST_PACKET", "FIRST_NS", "LAST_NS", "STATE", "WAITS"]
    assert [getattr(connection_columns, name) for name in names] == list(
        range(connection_columns.SIDES)
    )
    names = ["NEXT", "FIRST", "ACKED", "ACKED_NS", "ACKED_PACKET", "PACKETS", "BYTES"]
    names += ["DATA_NS", "RESENT", "SIDE_FLAGS"]
    assert [getattr(connection_columns, name) for name in names] == list(
        range(connection_columns.SIDE)
    )
    assert connection_columns.COLUMNS == connection_columns.SIDES + 2 * connection_columns.SIDE


def test_bits_are_unique() -> None:
    state = [
        connection_columns.LIVE,
        connection_columns.ORIENTED,
        connection_columns.SYN_SEEN,
        connection_columns.ENDED,
    ]
    assert sum(state) == reduce(int.__or__, state) < 1 << connection_columns.NETWORK_AT
    assert len(END_REASONS) - 1 == connection_columns.ENDED >> connection_columns.ENDED_AT
    marks = [
        connection_columns.ANCHORED,
        connection_columns.HAS_ACKED,
        connection_columns.HAS_ISN,
        connection_columns.FINISHED,
    ]
    assert sum(marks) == reduce(int.__or__, marks) < 1 << connection_columns.COUNTERS_AT


def test_counts_have_the_names_of_sides() -> None:
    names = [field.name for field in fields(Side)]
    assert names[connection_columns.CUT_BYTES - connection_columns.GAPS] == "cut_bytes"
    assert names[-connection_columns.GAPS] == "retransmitted_segments"
    assert connection_columns.COUNTS == connection_columns.GAPS + 1
