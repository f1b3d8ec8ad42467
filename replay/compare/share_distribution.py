"""
Differences in the distribution of records in a share group.

A coordinator gives each available record to any member that asks, and a released one again at once:
which record comes in which response depends on the moment. Records in both responses are compared,
and missing ones at the end, for the group as a whole (`log_balance`). Source: KIP-932.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replay.model.outcome import Difference

_PATH = re.compile(r"\.acquired_records\b|\.records(\[[^\]]*\])?$")
"""What was acquired, and which records there are; not the fields of a record."""

_ELEMENT = re.compile(r"\]$")


def is_of_distribution(difference: Difference) -> bool:
    """Return whether a ShareFetch response differs only in which records the member got."""
    if difference.is_error:
        return False
    if _PATH.search(difference.path):
        return True
    only = difference.captured if difference.replayed is None else difference.replayed
    is_one_sided = None in (difference.captured, difference.replayed)
    return is_one_sided and bool(_ELEMENT.search(difference.path)) and not _has_error(only)


def _has_error(element: Any) -> bool:
    """Return whether a topic or partition has an error, or a partition in it."""
    if not isinstance(element, Mapping):
        return False
    errors = (element.get("error_code"), element.get("acknowledge_error_code"))
    return any(errors) or any(map(_has_error, element.get("partitions") or ()))
