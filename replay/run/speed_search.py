"""Search for the highest speed sustained by a target: choice of the next speed."""

from __future__ import annotations

MAX_TRIALS = 14
"""Maximum number of trials in all."""

FIRST_SPEED = 1.0
LOWEST_SPEED, HIGHEST_SPEED = 1 / 64, 65536.0

_PRECISION = 1.1
"""Maximum ratio of the lowest failing speed to a sustained one at the end of the search."""

_MIN_GAIN = 1.05
"""Minimum gain of the request rate when the speed is doubled."""


class SpeedSearch:
    """
    Finds a speed: doubles it until the target fails, or halves it until it holds, then bisects.

    Attributes:
        is_saturated: Whether the rate of requests no longer rises with the speed.
    """

    def __init__(self) -> None:
        self.is_saturated = False
        self._trials = 0
        self._holds: float | None = None
        self._holds_rate = 0.0
        self._fails: float | None = None

    def next_speed(self) -> float | None:
        """Return the speed of the next trial; None at the end of the search."""
        if self._trials >= MAX_TRIALS or self.is_saturated:
            return None
        if self._holds is None:
            lower = FIRST_SPEED if self._fails is None else self._fails / 2
            return lower if lower >= LOWEST_SPEED else None
        if self._fails is None:
            higher = self._holds * 2
            return higher if higher <= HIGHEST_SPEED else None
        if self._fails <= self._holds * _PRECISION:
            return None
        return float((self._holds * self._fails) ** 0.5)

    def record(self, speed: float, holds: bool, rate: float) -> None:
        """
        Record a trial.

        Args:
            speed: Its speed.
            holds: Whether the target held it.
            rate: The requests per second that were sent.
        """
        self._trials += 1
        if not holds:
            self._fails = speed
            return
        if self._holds is not None and self._fails is None:
            self.is_saturated = rate < self._holds_rate * _MIN_GAIN
        self._holds, self._holds_rate = speed, max(rate, self._holds_rate)
