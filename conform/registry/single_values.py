"""What the messages of an exchange say once, as columns show it."""

from __future__ import annotations

from typing import NamedTuple


class SingleValues(NamedTuple):
    """
    The single fields of the canonical messages of an exchange that rules read.

    Attributes:
        throttle_ms: The throttle time in the response; 0 without one.
        is_refused: Whether the response has the error UNSUPPORTED_VERSION, anywhere.
    """

    throttle_ms: int = 0
    is_refused: bool = False


NO_VALUES = SingleValues()
"""The values without a message."""
