"""Pacing: the time at which each step is due."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

SECOND_NS = 1_000_000_000

MAX_THROTTLE_S = 60.0
"""The longest pause for a throttle time by default; Kafka's own are some seconds."""

STAGGER_S = 1.0
"""Each copy of a capture begins so long after the one before, unless another time is given."""


@dataclass(frozen=True, slots=True)
class Pace:
    """
    The pacing of a replay.

    Attributes:
        speed: Speed relative to the capture; 0 for as fast as responses arrive.
        rate: Maximum number of requests per second; 0 for no limit.
        max_wait_s: Longer pauses between requests are cut to this; None for no limit.
    """

    speed: float = 1.0
    rate: float = 0.0
    max_wait_s: float | None = None

    def schedule(self, times_ns: Iterable[int]) -> array[int]:
        """
        Return the due time of each step, in nanoseconds from the beginning of the replay.

        Args:
            times_ns: The captured times of the requests, in order.
        """
        due = array("q")
        at_ns = 0.0
        before: int | None = None
        for time_ns in times_ns:
            wait_ns = 0.0
            if before is not None:
                if self.speed:
                    wait_ns = (time_ns - before) / self.speed
                    if self.max_wait_s is not None:
                        wait_ns = min(wait_ns, self.max_wait_s * SECOND_NS)
                if self.rate:
                    wait_ns = max(wait_ns, SECOND_NS / self.rate)
            at_ns += wait_ns
            before = time_ns
            due.append(round(at_ns))
        return due

    @property
    def is_timed(self) -> bool:
        """Whether steps have due times at all."""
        return bool(self.speed or self.rate)
