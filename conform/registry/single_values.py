"""What the messages of an exchange say once, as columns show it."""

from __future__ import annotations

from typing import NamedTuple

NO_REPLICA = -1
"""The replica id of consumers."""


class SingleValues(NamedTuple):
    """
    The single fields of the canonical messages of an exchange that rules read.

    Attributes:
        throttle_ms: The throttle time in the response; 0 without one.
        is_refused: Whether the response has the error UNSUPPORTED_VERSION, anywhere.
        replica_id: The replica id in a Fetch request; NO_REPLICA of a consumer.
    """

    throttle_ms: int = 0
    is_refused: bool = False
    replica_id: int = NO_REPLICA


NO_VALUES = SingleValues()
"""The values without a message."""
