"""A bounded number of states."""

from __future__ import annotations

import pickle

from timeline.events.states import Fresh, States


def test_the_least_recently_used_state_is_dropped() -> None:
    states: States[str, list[int]] = States(Fresh(list), limit=3)
    for key in "abc":
        states.use(key).append(1)
    states.use("a").append(2)
    states.use("d")
    assert list(states) == ["c", "a", "d"]
    assert states["a"] == [1, 2]


def test_states_are_pickled_with_their_limit() -> None:
    states: States[int, list[int]] = States(Fresh(list), limit=2)
    for number in range(2):
        states.use(number)
    copy = pickle.loads(pickle.dumps(states))
    copy.use(2)
    assert list(copy) == [1, 2]
