"""
Accesses of captured requests in order of time: which earlier accesses a step must follow.

Requests are merged with the responses by time. A step that accesses a resource follows the steps of
other connections that accessed it and were answered before, if one of both writes.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol


class CaptureTimes(Protocol):
    """Provides the connection and the times of exchanges, by their numbers."""

    def connection(self, number: int) -> int:
        """Return the connection of an exchange."""

    def times_ns(self, number: int) -> tuple[int, int | None]:
        """Return when request and response were complete; None without a response."""


_RespondedSteps = dict[int, tuple[int, int]]
"""Connection -> its newest step, and the time of its response."""


@dataclass(slots=True)
class _Accesses:
    """Answered steps that accessed a resource; `commutes`: its writes may be in any order."""

    readers: _RespondedSteps = field(default_factory=dict)
    writers: _RespondedSteps = field(default_factory=dict)
    commutes: bool = False

    def add_dependencies(self, found: set[int], connection: int, writes: bool) -> None:
        """Add the dependencies of a step on steps of other connections."""
        for side in self._sides(writes):
            for other, (step, _) in side.items():
                if other != connection:
                    found.add(step)

    def record(self, connection: int, step: int, begun_ns: int, done_ns: int, writes: bool) -> None:
        """Add an answered step; a write replaces its own dependencies."""
        if not writes:
            self.readers[connection] = step, done_ns
            return
        for side in self._sides(writes):
            if side:
                for other in [each for each, (_, at_ns) in side.items() if at_ns < begun_ns]:
                    del side[other]
        self.writers[connection] = step, done_ns

    def _sides(self, writes: bool) -> tuple[_RespondedSteps, ...]:
        """Return the steps with a relevant order relative to a read or a write."""
        if not writes:
            return (self.writers,)
        return (self.readers,) if self.commutes else (self.readers, self.writers)


class AccessSweep:
    """
    Processes captured requests in order, merged with the responses by time.

    Args:
        accessed: Returns for an exchange twice the numbers of its resources, 1 more for a write.
        commuting: The numbers of resources with writes that may be in any order.
        times: Provides the connections and times of exchanges.
    """

    def __init__(
        self, accessed: Callable[[int], list[int]], commuting: Set[int], times: CaptureTimes
    ) -> None:
        self._times = times
        self._accessed = accessed
        self._commuting = commuting
        self._accesses: dict[int, _Accesses] = {}
        self._newest_steps: dict[int, int] = {}
        self._responses: list[tuple[int, int, int]] = []

    def record_request(self, step: int, number: int) -> set[int]:
        """Return the dependencies of a request on steps with earlier responses."""
        begun_ns, done_ns = self._times.times_ns(number)
        while self._responses and self._responses[0][0] < begun_ns:
            self._record_response(*heappop(self._responses))
        if done_ns is not None:
            heappush(self._responses, (done_ns, step, number))
        connection = self._times.connection(number)
        found = {self._newest_steps[connection]} if connection in self._newest_steps else set()
        for each in self._accessed(number):
            access = self._accesses.get(each >> 1)
            if access is not None:
                access.add_dependencies(found, connection, bool(each & 1))
        return found

    def _record_response(self, done_ns: int, step: int, number: int) -> None:
        """Record the read and write sets of a step at the time of its response."""
        connection = self._times.connection(number)
        begun_ns = self._times.times_ns(number)[0]
        self._newest_steps[connection] = max(self._newest_steps.get(connection, -1), step)
        for each in self._accessed(number):
            resource = each >> 1
            access = self._accesses.get(resource)
            if access is None:
                access = self._accesses[resource] = _Accesses(commutes=resource in self._commuting)
            access.record(connection, step, begun_ns, done_ns, bool(each & 1))
