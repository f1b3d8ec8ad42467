"""Bounded state of rules."""

from __future__ import annotations

from conform.evidence.bounded_memory import BoundedDict
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
