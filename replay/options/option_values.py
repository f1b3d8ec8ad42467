"""Values of command-line options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from dissector.errors import UsageError
from replay.mapping.offset_map import Policy

AUTO = "auto"
"""The word of `--speed` that has the highest speed found."""


def speed_of(text: str) -> float:
    """
    Return a speed; 0 for as fast as possible, also if each trial has a separate speed.

    Raises:
        UsageError: The text is not a speed.
    """
    if text in ("max", AUTO):
        return 0.0
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise UsageError(f"--speed takes a number above 0, max or auto, not {text!r}")
    return speed


def topic_map_of(pairs: Iterable[str]) -> dict[str, str]:
    """
    Return captured topics and those on the target, from `OLD=NEW`.

    Raises:
        UsageError: A pair is invalid, or a topic has two.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not (old and equals and new):
            raise UsageError(f"--topic-map takes OLD=NEW, not {pair!r}")
        if old in found:
            raise UsageError(f"--topic-map names {old!r} twice")
        found[old] = new
    return found


def offset_policy_of(text: str) -> Policy:
    """
    Return the offset to send in place of one without a mapping.

    Raises:
        UsageError: The policy does not exist.
    """
    known: tuple[Policy, ...] = get_args(Policy)
    for policy in known:
        if policy == text:
            return policy
    raise UsageError(f"--offsets takes {', '.join(known)}, not {text!r}")
