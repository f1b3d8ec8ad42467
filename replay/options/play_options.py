"""Play options: pacing, repeats and limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cluster.client.broker_connection import TIMEOUT_S
from replay.options.pacing import MAX_THROTTLE_S, STAGGER_S, Pace


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """
    Pacing, repeats and limits of a replay.

    Attributes:
        pace: The pacing.
        loop: Number of passes of each copy; later passes have separate names.
        limit: Maximum number of requests in all passes together; None for no limit.
        duration_s: Maximum duration in all; None for no limit.
        timeout_s: Timeout for a response, and for retries until the target reaches the captured
            state.
        honours_throttle: Whether a connection pauses for the throttle time in a response (KIP-219).
        max_throttle_s: Limit of these pauses: a target may name any number.
        scale: Number of copies of the capture that are played at the same time.
        stagger_s: Each copy begins so long after the one before.
        final_check: Whether the target is asked for what the replay wrote at the end of each pass.
        first_pass: Number of the first pass, by which its names differ from those of other runs.
    """

    pace: Pace = Pace()  # noqa: RUF009 (frozen)
    loop: int = 1
    limit: int | None = None
    duration_s: float | None = None
    timeout_s: float = TIMEOUT_S
    honours_throttle: bool = True
    scale: int = 1
    stagger_s: float = STAGGER_S
    final_check: bool = True
    first_pass: int = 0
    max_throttle_s: float = MAX_THROTTLE_S

    @property
    def passes(self) -> int:
        """The number of passes of all copies; copy and round of each are `divmod`'s, by `scale`."""
        return self.loop * self.scale

    @property
    def copy_pace(self) -> Pace:
        """The pacing of one copy: all copies together keep to the rate."""
        return replace(self.pace, rate=self.pace.rate / self.scale)
