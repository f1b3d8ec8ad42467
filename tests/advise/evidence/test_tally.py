"""Totals by keys, added up over windows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advise.evidence.interned_names import MAX_NAMES, InternedNames
from advise.evidence.tally import Tally

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-5, 5)), min_size=1, max_size=30
)


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_totals_equal_those_of_single_rows(windows: list[list[tuple[int, int, int]]]) -> None:
    tally = Tally(("client", "connection"), ("count",), ("least",), ("most",))
    for rows in windows:
        client, connection, value = np.array(rows, np.int64).T
        moments = dict.fromkeys(("first_ns", "first_packet", "last_ns", "last_packet"), value)
        columns = {"client": client, "connection": connection, "count": value, **moments}
        tally.add({**columns, "least": value, "most": value})
    every = [row for rows in windows for row in rows if row[1] != 1]
    counts, values = Counter[int](), dict[int, list[int]]()
    for client_number, _, number in every:
        counts[client_number] += number
        values.setdefault(client_number, []).append(number)
    found = tally.by("client", without=[1])
    assert [row["client"] for row in found] == sorted(values)
    for row in found:
        of_client = values[row["client"]]
        least_and_most = row["least"], row["most"]
        assert (row["count"], *least_and_most) == (sum(of_client), min(of_client), max(of_client))


def test_names_beyond_the_limit_share_one_number() -> None:
    names = InternedNames("(others)")
    numbers = [names.number(str(at)) for at in range(MAX_NAMES + 3)]
    assert numbers[-3:] == [MAX_NAMES] * 3
    assert names.name(MAX_NAMES) == "(others)"
    assert names.overflow == 3
