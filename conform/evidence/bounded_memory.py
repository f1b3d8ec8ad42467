"""State of rules: one object of each class per connection or capture, of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_ITEMS = 100_000
"""Default limit of the keys of a `BoundedDict`."""


class BoundedDict(OrderedDict[Key, Value], Generic[Key, Value]):
    """A dict of bounded size that evicts the keys that were set longest ago."""

    def __init__(self, limit: int = MAX_ITEMS) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)


class RuleStates:
    """Holds one instance of each class of state that rules request."""

    def __init__(self) -> None:
        self._states: dict[type, Any] = {}

    def state(self, kind: type[State]) -> State:
        """Return the one instance of a class; the first call creates it, without arguments."""
        found = self._states.get(kind)
        if found is None:
            found = self._states[kind] = kind()
        there: State = found
        return there
