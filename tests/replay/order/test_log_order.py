"""Dependencies on records, compared with a full search."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replay.order.log_order import LogOrder
from replay.order.read_write_sets import UNKNOWN_OFFSET
from tests.replay.support.builders import uuid

LOGS = (("orders", 0), (uuid(1), 0), ("orders", 1))
NAMES = {uuid(1): "orders"}

row = st.tuples(st.integers(0, 2), st.integers(0, 6), st.booleans(), st.booleans())
"""Log, offset, whether it is a fetch, whether it is sent."""


@given(
    rows=st.lists(row, max_size=12),
    connections=st.lists(st.integers(0, 2), min_size=12, max_size=12),
    data=st.data(),
)
def test_dependency_is_the_nearest_earlier_write(
    rows: list[tuple[int, int, bool, bool]], connections: list[int], data: st.DataObject
) -> None:
    logs = LogOrder()
    for number, (log, offset, is_fetch, _) in enumerate(rows):
        (logs.record_read if is_fetch else logs.record_append)(
            logs.number(LOGS[log]), offset, number
        )
    step_of = np.array(data.draw(st.permutations(range(len(rows)))), np.int32)
    step_of[[not is_sent for *_, is_sent in rows]] = -1
    found = sorted(logs.dependencies(step_of, np.array(connections, np.int32), NAMES.get))
    writes = sorted(
        (offset, int(step_of[number]), log == 2)
        for number, (log, offset, is_fetch, is_sent) in enumerate(rows)
        if is_sent and not is_fetch
    )
    expected = []
    for number, (log, offset, is_fetch, is_sent) in enumerate(rows):
        step, same = int(step_of[number]), log == 2
        place = (offset, 99) if is_fetch else (offset, step)
        before = [s for o, s, which in writes if which == same and (o, s) < place and s < step]
        if is_sent and before and (is_fetch or connections[before[-1]] != connections[step]):
            expected.append((step, before[-1]))
    assert found == sorted(expected)


def test_writers_of_a_log() -> None:
    logs = LogOrder()
    for number, log in enumerate((0, 2, 0)):
        logs.record_append(logs.number(LOGS[log]), number, number)
    assert [logs.writers(log) for log in LOGS] == [[0, 2], [], [1]]


def test_only_a_response_shows_an_append() -> None:
    logs = LogOrder()
    for number, offset in enumerate((UNKNOWN_OFFSET, 4)):
        logs.record_append(logs.number(LOGS[0]), offset, number)
    assert logs.writers(LOGS[0]) == [1]


def test_writes_of_one_connection_do_not_wait_for_each_other() -> None:
    logs = LogOrder()
    for number in range(5):
        logs.record_append(logs.number(LOGS[0]), number, number)
    steps = np.arange(5, dtype=np.int32)
    assert list(logs.dependencies(steps, np.zeros(5, np.int32), NAMES.get)) == []
    assert list(logs.dependencies(steps, np.array([0, 1, 1, 1, 0], np.int32), NAMES.get)) == [
        (1, 0),
        (4, 3),
    ]
