"""States of resources, in the order of the capture."""

from __future__ import annotations

from serve.recording.captured_cluster import StateHistory


def _history(*states: tuple[int, str]) -> StateHistory[str]:
    history: StateHistory[str] = StateHistory()
    for time_ns, state in states:
        history.add(time_ns, state)
    return history


def test_consecutive_equal_states_are_merged() -> None:
    history = _history((1, "a"), (2, "a"), (3, "b"))
    assert history.states == [(1, 2, "a"), (3, 3, "b")]


def test_a_state_ends_when_clients_have_passed_it() -> None:
    history = _history((1, "a"), (2, "a"), (3, "b"))
    history.advance(2, is_failed=False)
    assert history.current() == "a"
    history.advance(3, is_failed=False)
    assert history.current() == "b"
    history.advance(9, is_failed=True)
    assert history.current() == "b"


def test_an_error_state_ends_by_itself() -> None:
    history = _history((1, "error"), (2, "fine"))
    history.advance(0, is_failed=True)
    assert history.current() == "fine"


def test_a_client_continues_at_its_position() -> None:
    history = _history((1, "a"), (5, "b"), (9, "c"))
    history.skip_to(6)
    assert history.current() == "b"
