"""The identity of a group for the rules of classic groups."""

from __future__ import annotations

from typing import TypeAlias

from conform.evidence.observation import Turn

MOST_GROUPS = 2_000
"""Limit of the groups, or of their generations, that a rule keeps."""

GroupId: TypeAlias = tuple[str, str]
"""The coordinator's address and the name of the group."""


def group_of(turn: Turn, name: str) -> GroupId:
    """Return the identity of a group at the coordinator of an exchange."""
    return turn.talk.broker.address, name
