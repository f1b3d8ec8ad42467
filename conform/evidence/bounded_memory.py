"""State of rules: one object of each class per connection or capture, of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_ITEMS = 100_000
"""Default limit of a `BoundedDict`."""


class BoundedDict(OrderedDict[Key, Value], Generic[Key, Value]):
    """A dict of bounded size that evicts the least recently set keys."""

    def __init__(self, limit: int = MAX_ITEMS) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)


class RuleStates:
    """Holds the state of rules: one instance of each class."""

    def __init__(self) -> None:
        self._states: dict[type, Any] = {}

    def state(self, kind: type[State]) -> State:
        """Return the instance of a class; the first call creates it, without arguments."""
        found = self._states.get(kind)
        if found is None:
            found = self._states[kind] = kind()
        state: State = found
        return state
