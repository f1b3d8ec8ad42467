"""What rules remember: one state of each kind for a connection or a capture, of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Key = TypeVar("Key")
Value = TypeVar("Value")

MOST_KEPT = 100_000
"""Keys of a `Newest`, unless it says otherwise."""


class Newest(OrderedDict[Key, Value], Generic[Key, Value]):
    """A dict that forgets the keys that were set longest ago, so that it stays small."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Remembers:
    """Has one instance of each kind of state that rules ask for."""

    def __init__(self) -> None:
        self._states: dict[type, Any] = {}

    def state(self, kind: type[State]) -> State:
        """Return the one instance of a class; it is made, without arguments, when first asked."""
        found = self._states.get(kind)
        if found is None:
            found = self._states[kind] = kind()
        there: State = found
        return there
