"""How a plan is played: pace, repeats and limits."""

from __future__ import annotations

from dataclasses import dataclass

from replay.client.broker_connection import TIMEOUT_S
from replay.options.pacing import Pace


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """
    How a plan is played.

    Attributes:
        pace: How fast.
        loop: How many times; names are unique to each pass after the first.
        limit: How many requests are sent at most, in all passes together; None for all.
        duration_s: How long it may take at most, in all; None for as long as it takes.
        timeout_s: How long the target may take for an answer, and how long it is asked again where
            it must come to what the capture shows.
        honours_throttle: Whether a connection pauses when the target asks for that (KIP-219).
    """

    pace: Pace = Pace()  # noqa: RUF009 (frozen)
    loop: int = 1
    limit: int | None = None
    duration_s: float | None = None
    timeout_s: float = TIMEOUT_S
    honours_throttle: bool = True
