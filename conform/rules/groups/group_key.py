"""The key of a group, for the rules about groups."""

from __future__ import annotations

from typing import TypeAlias

from conform.evidence.observation import Observation

MAX_GROUPS = 2_000
"""Limit of the groups, or of their generations, that a rule retains."""

GroupKey: TypeAlias = tuple[str, str]
"""The coordinator's address and the name of the group."""


def group_key_of(observation: Observation, name: str) -> GroupKey:
    """Return the key of a group at the coordinator of an exchange."""
    return observation.connection.broker.address, name
