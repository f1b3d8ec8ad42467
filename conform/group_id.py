"""A group as rules of classic groups know it."""

from __future__ import annotations

from typing import TypeAlias

from conform.turn import Turn

MOST_GROUPS = 2_000
"""Groups, or generations of them, that a rule remembers."""

GroupId: TypeAlias = tuple[str, str]
"""The coordinator's address and the name of the group."""


def group_of(turn: Turn, name: str) -> GroupId:
    """Return the group of a name, at the coordinator that was asked."""
    return turn.talk.broker.address, name
