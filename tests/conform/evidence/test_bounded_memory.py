"""What rules remember is one of each kind, and small."""

from __future__ import annotations

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import CaptureState, ConnectionState


def test_newest_forgets_what_was_set_longest_ago() -> None:
    newest: BoundedDict[str, int] = BoundedDict(2)
    newest["a"], newest["b"] = 1, 2
    newest["a"] = 3
    newest["c"] = 4
    assert dict(newest) == {"a": 3, "c": 4}


def test_states_are_made_once_for_each_talk() -> None:
    class Count:
        def __init__(self) -> None:
            self.number = 0

    first, second = ConnectionState(0, "a:1", "b:2"), ConnectionState(1, "a:3", "b:2")
    first.state(Count).number += 1
    assert first.state(Count).number == 1
    assert second.state(Count).number == 0
    assert CaptureState().state(Count).number == 0
