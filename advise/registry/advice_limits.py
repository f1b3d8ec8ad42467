"""The thresholds of a run: defaults, those of settings, those of options."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from advise.registry.advice import ADVICES
from dissector.errors import UsageError, suggestion

Limits: TypeAlias = Mapping[str, Mapping[str, float]]
"""Id of an advice -> name of a threshold -> its value."""


def default_limits() -> dict[str, dict[str, float]]:
    """Return the thresholds of all advices."""
    return {
        each.id: {name: limit.default for name, limit in each.limits.items()}
        for each in ADVICES.values()
    }


def limits_of(given: Iterable[str] = (), settings: Limits | None = None) -> Limits:
    """
    Return all thresholds.

    Args:
        given: Texts like `tiny-batches.records=3`; later ones count.
        settings: Those of the settings, which are checked already.

    Raises:
        UsageError: The advice or threshold does not exist, or the value is no number.
    """
    limits = default_limits()
    for advice_id, found in (settings or {}).items():
        limits[advice_id] |= found
    for text in given:
        name, equals, value = text.partition("=")
        advice_id, dot, threshold = name.partition(".")
        if not (equals and dot):
            raise UsageError(f"--set takes ADVICE.NAME=VALUE, not {text!r}")
        _change(limits, advice_id.strip(), threshold.strip(), value.strip())
    return limits


def _change(limits: dict[str, dict[str, float]], advice_id: str, name: str, text: str) -> None:
    """Change a threshold to the number in a text."""
    if advice_id not in limits:
        raise UsageError(f"--set: there is no advice {advice_id!r}{suggestion(advice_id, limits)}")
    if name not in limits[advice_id]:
        known = ", ".join(limits[advice_id])
        raise UsageError(f"--set: {advice_id} has the thresholds {known}, not {name!r}")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"--set: {advice_id}.{name} takes a number from 0 on, not {text!r}")
    limits[advice_id][name] = number
