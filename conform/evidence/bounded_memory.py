"""State of rules: one object of each class per connection or capture, of bounded size."""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_ITEMS = 100_000
"""Default limit of a `BoundedDict`."""


NO_RESTS: Mapping[type, int] = MappingProxyType({})
"""No state is ever at rest."""


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


class BudgetReached(Exception):
    """A rule has reached a budget, and is not judged any further; the text says which."""


class RuleStates:
    """
    Holds the state of rules: one instance of each class.

    Args:
        exhausted: The classes that have reached their budget, with the reason; shared by all
            connections of a capture.
        rests: The classes of states that may be at rest, each with a bit.

    Attributes:
        at_rest: The bits of those that are at rest, and all others; see `Rest`.
    """

    def __init__(
        self,
        exhausted: dict[type, str] | None = None,
        rests: Mapping[type, int] = NO_RESTS,
    ) -> None:
        self._states: dict[type, Any] = {}
        self._exhausted = {} if exhausted is None else exhausted
        self._rests = rests
        self.at_rest = -1

    def set_rest(self, kind: type, is_at_rest: bool) -> None:
        """Note whether the state of a class is at rest: only then screens that need it pass."""
        bit = self._rests.get(kind, 0)
        self.at_rest = self.at_rest | bit if is_at_rest else self.at_rest & ~bit

    def state(self, kind: type[State]) -> State:
        """
        Return the instance of a class; the first call creates it, without arguments.

        Raises:
            BudgetReached: The instances of the class have reached their budget.
        """
        found = self._states.get(kind)
        if found is None:
            if kind in self._exhausted:
                raise BudgetReached(self._exhausted[kind])
            found = self._states[kind] = kind()
        state: State = found
        return state

    def sizes(self) -> Iterator[tuple[type, int]]:
        """Yield each class with the size of its instance in bytes."""
        for kind, state in self._states.items():
            yield kind, held_bytes(state)

    def drop(self, kind: type) -> None:
        """Free the memory of the instance of a class."""
        self._states.pop(kind, None)


_CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def held_bytes(state: object) -> int:
    """
    Return the size in bytes of a state, of its containers and of the values in them.

    A value that is contained twice counts twice. Of objects of other packages, such as exchanges,
    only the object itself counts: other things refer to them too. So it is with the holders of
    states, to which kept observations refer: they lead back to the state itself.
    """
    size = 0
    waiting: list[Any] = [state]
    while waiting:
        each = waiting.pop()
        counts, owns = _counting_of(each.__class__)
        if counts:
            size += sys.getsizeof(each)
        if owns:
            waiting += gc.get_referents(each)
    return size


@lru_cache(256)
def _counting_of(kind: type) -> tuple[bool, bool]:
    """Return whether a value of a type counts, and what it refers to; values have few types."""
    if issubclass(kind, type):
        return False, False
    owns = issubclass(kind, _CONTAINERS) or kind.__module__.startswith("conform.")
    return True, owns and not issubclass(kind, RuleStates)
