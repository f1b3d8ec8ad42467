"""Whether two replays give the same for a step, but for names and values of the target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from replay.model.outcome import Reason, Verdict
from tests.kafkashark.redacted.played_steps import PlayedStep

_OF_TIMING = frozenset({Reason.ORDER, Reason.MORE, Reason.RECORDS})
"""Equivalence of responses with what came first or in time; the same replay has it or not."""

_OF_TARGET = re.compile(
    r"127\.0\.0\.1:\d+|0x[0-9a-f]{12}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|producer \d+"
)
"""What each target chooses: its ports, and the ids of its members, topics and producers."""

_ELEMENT = re.compile(r"\[([^\]]*)\]")
_CONTENT = re.compile(r"[0-9a-f]{60,}\.*")
"""Bytes in a difference: records or metadata, with names inside."""


def is_same(one: PlayedStep, other: PlayedStep, names: Mapping[str, str]) -> bool:
    """Return whether a step of a capture and that of its redacted copy ended alike."""
    if _outcome(one) != _outcome(other) or not _is_same_text(one.failure, other.failure, names):
        return False
    left = list(other.differences)
    for each in one.differences:
        found = next((its for its in left if _is_same_difference(each, its, names)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _outcome(step: PlayedStep) -> tuple[Verdict, frozenset[Reason], int, int]:
    """Return verdict, reasons, version and parts of a step, without what timing decides."""
    reasons = step.reasons - _OF_TIMING
    is_same = step.verdict is Verdict.EQUIVALENT and not reasons
    return Verdict.SAME if is_same else step.verdict, reasons, step.version, step.parts


def _is_same_difference(
    one: tuple[str, Any, Any], other: tuple[str, Any, Any], names: Mapping[str, str]
) -> bool:
    return _is_same_path(one[0], other[0], names) and _is_same_value(one[1:], other[1:], names)


def _is_same_path(one: str, other: str, names: Mapping[str, str]) -> bool:
    """Compare paths of fields, which name elements of arrays by their keys."""
    if _ELEMENT.sub("[]", one) != _ELEMENT.sub("[]", other):
        return False
    pairs = zip(_ELEMENT.findall(one), _ELEMENT.findall(other), strict=True)
    return all(_is_same_key(old, new.replace(r"\x5d", "]"), names) for old, new in pairs)


def _is_same_key(one: str, other: str, names: Mapping[str, str]) -> bool:
    if _is_same_text(one, other, names):
        return True
    parts = one.split(","), other.split(",")
    return len(parts[0]) == len(parts[1]) > 1 and _is_same_list(*parts, names)


def _is_same_text(one: str, other: str, names: Mapping[str, str]) -> bool:
    if other in (one, names.get(one)):
        return True
    is_content = _CONTENT.fullmatch(one) and _CONTENT.fullmatch(other) and len(one) == len(other)
    return bool(is_content) or _OF_TARGET.sub("", one) == _OF_TARGET.sub("", other)


def _is_same_value(one: Any, other: Any, names: Mapping[str, str]) -> bool:
    if isinstance(one, UUID) and isinstance(other, UUID):
        return True
    if isinstance(one, str) and isinstance(other, str):
        return _is_same_text(one, other, names)
    if isinstance(one, bytes) and isinstance(other, bytes):
        return len(one) == len(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return _is_same_list(list(one.items()), list(other.items()), names)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return _is_same_list(one, other, names)
    return bool(one == other)


def _is_same_list(one: Sequence[Any], other: Sequence[Any], names: Mapping[str, str]) -> bool:
    return len(one) == len(other) and all(
        _is_same_value(old, new, names) for old, new in zip(one, other, strict=True)
    )
