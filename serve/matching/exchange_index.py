"""Index of captured exchanges by keys."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable


class ExchangeIndex:
    """
    Numbers of exchanges by key, in the order of the capture.

    An exchange has several keys, from the most to the least specific. After the last exchange of a
    key, that exchange is returned again.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, array[int]] = {}
        self._used: set[int] = set()
        self._cursors: dict[int, int] = {}

    def add(self, number: int, keys: Iterable[Hashable]) -> None:
        """Add an exchange."""
        for key in keys:
            self._numbers.setdefault(hash(key), array("i")).append(number)

    def numbers(self, key: Hashable) -> array[int]:
        """Return all exchanges of a key."""
        return self._numbers.get(hash(key), array("i"))

    def next_unused(self, key: Hashable) -> int | None:
        """Return the first unused exchange of a key; None without one."""
        numbers, at = self.numbers(key), self._cursors.get(hash(key), 0)
        while at < len(numbers) and numbers[at] in self._used:
            at += 1
        self._cursors[hash(key)] = at
        return numbers[at] if at < len(numbers) else None

    def take(self, keys: Iterable[Hashable]) -> int | None:
        """
        Take the exchange for a request.

        Args:
            keys: Keys from the most to the least specific; the first key with any exchange is used.

        Returns:
            The first unused exchange, or the last one again; None if no key has exchanges.
        """
        for key in keys:
            numbers = self.numbers(key)
            if numbers:
                number = self.next_unused(key)
                if number is not None:
                    self._used.add(number)
                return numbers[-1] if number is None else number
        return None

    def is_used(self, number: int) -> bool:
        """Return whether an exchange has been taken."""
        return number in self._used

    def use(self, number: int) -> None:
        """Mark an exchange as taken."""
        self._used.add(number)
