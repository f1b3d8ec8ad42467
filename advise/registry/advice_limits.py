"""The thresholds of a run: defaults, those of the project's settings, those of options."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from advise.registry.advice import ADVICES
from dissector.errors import UsageError, suggestion

Limits: TypeAlias = Mapping[str, Mapping[str, float]]
"""Id of an advice -> name of a threshold -> its value."""

SETTINGS_FILES = ("kafkashark.toml", "pyproject.toml")
"""Files of the current folder with settings, in the table `tool.kafkashark.advise`."""

_MAX_FILE_BYTES = 1 << 20


def limits_of(given: Iterable[str] = (), folder: Path | None = None) -> Limits:
    """
    Return all thresholds.

    Args:
        given: Texts like `tiny-batches.records=3`; later ones count.
        folder: The folder of the settings; None: no settings are read.

    Raises:
        UsageError: The advice or threshold does not exist, or the value is no number.
    """
    limits = {
        each.id: {name: limit.default for name, limit in each.limits.items()}
        for each in ADVICES.values()
    }
    if folder is not None:
        for place, advice_id, name, value in _from_files(folder):
            _change(limits, place, advice_id, name, value)
    for text in given:
        name, equals, value = text.partition("=")
        advice_id, dot, threshold = name.partition(".")
        if not (equals and dot):
            raise UsageError(f"--set takes ADVICE.NAME=VALUE, not {text!r}")
        _change(limits, "--set", advice_id.strip(), threshold.strip(), value.strip())
    return limits


def _change(
    limits: dict[str, dict[str, float]], place: str, advice_id: str, name: str, value: Any
) -> None:
    """Change a threshold; `place` is where it was set, for errors."""
    if advice_id not in limits:
        raise UsageError(
            f"{place}: there is no advice {advice_id!r}{suggestion(advice_id, limits)}"
        )
    if name not in limits[advice_id]:
        known = ", ".join(limits[advice_id])
        raise UsageError(f"{place}: {advice_id} has the thresholds {known}, not {name!r}")
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"{place}: {advice_id}.{name} takes a number from 0 on, not {value!r}")
    limits[advice_id][name] = number


def _from_files(folder: Path) -> Iterable[tuple[str, str, str, Any]]:
    """Yield file, advice, threshold and value of the settings in a folder."""
    for file in SETTINGS_FILES:
        path = folder / file
        table = _table(path)
        for advice_id, values in table.items():
            if not isinstance(values, dict):
                raise UsageError(f"{file}: tool.kafkashark.advise.{advice_id} is not a table")
            for name, value in values.items():
                yield file, advice_id, name, value
        if table:
            return


def _table(path: Path) -> dict[str, Any]:
    """Return the thresholds in a file; empty without one."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
            return {}
        found: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path.name}: can not be read: {error}") from None
    for key in ("tool", "kafkashark", "advise"):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}
