"""Play options: pacing, repeats and limits."""

from __future__ import annotations

from dataclasses import dataclass

from replay.client.broker_connection import TIMEOUT_S
from replay.options.pacing import Pace


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """
    Pacing, repeats and limits of a replay.

    Attributes:
        pace: The pacing.
        loop: Number of passes; each after the first has names of its own.
        limit: Maximum number of requests in all passes together; None for no limit.
        duration_s: Maximum duration in all; None for no limit.
        timeout_s: Timeout for a response, and for retries until the target reaches the captured
            state.
        honours_throttle: Whether a connection pauses for the throttle time in a response (KIP-219).
    """

    pace: Pace = Pace()  # noqa: RUF009 (frozen)
    loop: int = 1
    limit: int | None = None
    duration_s: float | None = None
    timeout_s: float = TIMEOUT_S
    honours_throttle: bool = True
