"""Bounded state of rules."""

from __future__ import annotations

from uuid import UUID

import pytest

from conform.evidence.bounded_memory import BoundedDict, BudgetReached, held_bytes
from conform.evidence.observation import CaptureState, ConnectionState


def test_newest_forgets_the_oldest_entries() -> None:
    newest: BoundedDict[str, int] = BoundedDict(2)
    newest["a"], newest["b"] = 1, 2
    newest["a"] = 3
    newest["c"] = 4
    assert dict(newest) == {"a": 3, "c": 4}


def test_states_are_created_once_per_connection() -> None:
    class Count:
        def __init__(self) -> None:
            self.number = 0

    first, second = ConnectionState(0, "a:1", "b:2"), ConnectionState(1, "a:3", "b:2")
    first.state(Count).number += 1
    assert first.state(Count).number == 1
    assert second.state(Count).number == 0
    assert CaptureState().state(Count).number == 0


@pytest.mark.long
def test_the_size_of_a_state_grows_with_its_entries() -> None:
    class Names(BoundedDict[str, list[UUID]]):
        pass

    state, sizes = Names(), []
    for number in range(1000):
        state[f"name {number}"] = [UUID(int=number)] * 2
        sizes.append(held_bytes(state))
    assert sizes == sorted(sizes)
    assert 100_000 < sizes[-1] - sizes[0] < 1_000_000


def test_an_exhausted_state_is_not_created_again() -> None:
    exhausted: dict[type, str] = {}
    connections = [ConnectionState(number, "a:1", "b:2", exhausted) for number in range(2)]
    connections[0].state(list)
    exhausted[list] = "a reason"
    connections[0].drop(list)
    for each in connections:
        with pytest.raises(BudgetReached, match="a reason"):
            each.state(list)
        assert each.state(dict) == {}
