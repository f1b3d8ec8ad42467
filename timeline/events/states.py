"""Bounded states by key, which can be pickled between steps of a run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
State = TypeVar("State")

MAX_STATES = 10_000
"""Maximum number of states per tracker; the least recently used one is dropped first."""


class States(OrderedDict[Key, State], Generic[Key, State]):
    """States by key; the least recently used one is dropped at the limit."""

    def __init__(self, create: Callable[[Key], State], limit: int = MAX_STATES) -> None:
        """Start without states; `create` returns a new state for a key, and must be picklable."""
        super().__init__()
        self._create, self._limit = create, limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._create, self._limit), None, None, iter(self.items())

    def use(self, key: Key) -> State:
        """Return the state of a key; create it at the first call."""
        found = self.get(key)
        if found is None:
            found = self._create(key)
            self.put(key, found)
        else:
            self.move_to_end(key)
        return found

    def put(self, key: Key, state: State) -> None:
        """Set the state of a key."""
        self[key] = state
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Fresh(Generic[State]):
    """Creates equal states for all keys: `States(Fresh(list))`."""

    make: Callable[[], State]

    def __call__(self, key: object) -> State:
        """Return a new state."""
        return self.make()
