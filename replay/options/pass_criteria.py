"""Criteria for a failed replay: verdicts and limits of latency, and accepted differences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from dissector.errors import UsageError
from dissector.protocol.apis import NAMES
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.difference_baseline import DifferenceBaseline

FAIL_ON = {
    "differs": Verdict.DIFFERS,
    "error": Verdict.ERROR_CHANGED,
    "missing": Verdict.MISSING,
}
"""Word of `--fail-on` -> its verdict; all of them by default, and `UNSUPPORTED`."""

UNBALANCED = "unbalanced"
"""The word of `--fail-on` to fail if any log could not be balanced."""

UNSUPPORTED = "unsupported"
"""
The word of `--fail-on` to fail if the target can't do what a client needs; by default too, but for
the embedded broker.
"""

NOTHING = "nothing"
"""The word of `--fail-on` to never fail because of responses."""

_JITTER_MS = 1.0
"""Tolerance above a multiple of the captured latency, because of scheduler jitter."""

_LIMIT = re.compile(r"latency:(?:(\w+):)?(max|p\d{1,3})>(\d+(?:\.\d+)?)(x|ms)", re.IGNORECASE)


class Latencies(Protocol):
    """Latencies that provide percentiles."""

    def ms(self, percent: int) -> float | None:
        """Return a percentile in milliseconds; None without latencies."""


@dataclass(frozen=True, slots=True)
class Limit:
    """
    A limit of latency.

    Attributes:
        text: The text of the option.
        api: Name of the API; empty for each API.
        percent: The limited percentile; 100 for the maximum.
        maximum: The limit.
        is_factor: Whether it is a multiple of the captured percentile; else it is milliseconds.
    """

    text: str
    api: str
    percent: int
    maximum: float
    is_factor: bool

    def measure(self, api: str, captured: Latencies, replayed: Latencies) -> Row | None:
        """Return a row with the latency of an API and the limit; None if there is none for it."""
        before_ms, after_ms = captured.ms(self.percent), replayed.ms(self.percent)
        if (self.api and self.api != api) or after_ms is None:
            return None
        if self.is_factor and before_ms is None:
            return None
        limit_ms = (before_ms or 0.0) * self.maximum if self.is_factor else self.maximum
        tolerated_ms = limit_ms + (_JITTER_MS if self.is_factor else 0.0)
        return {
            "limit": self.text,
            "api": api,
            "captured_ms": before_ms,
            "replayed_ms": after_ms,
            "limit_ms": limit_ms,
            "exceeds": after_ms > tolerated_ms,
        }

    def violation(self, api: str, captured: Latencies, replayed: Latencies) -> Row | None:
        """Return a row if the latency of an API exceeds the limit, else None."""
        row = self.measure(api, captured, replayed)
        if row is None or not row.pop("exceeds"):
            return None
        return row


@dataclass(frozen=True, slots=True)
class Criteria:
    """
    The criteria for a failed replay.

    Attributes:
        verdicts: Verdicts; a single one fails the replay.
        limits: Limits of latency.
        accepted: Differences without effect on the exit status.
        wants_balance: Whether a log that could not be balanced fails the replay.
        wants_support: Whether requests that the target can't do fail the replay.
    """

    verdicts: frozenset[Verdict] = frozenset(FAIL_ON.values())
    limits: tuple[Limit, ...] = ()
    accepted: DifferenceBaseline = field(default_factory=DifferenceBaseline)
    wants_balance: bool = False
    wants_support: bool = True

    @property
    def words(self) -> list[str]:
        """The words of `--fail-on` for these criteria; empty for the default."""
        plain = [word for word, verdict in FAIL_ON.items() if verdict in self.verdicts]
        words = plain + [UNSUPPORTED] * self.wants_support + [UNBALANCED] * self.wants_balance
        words += [limit.text for limit in self.limits]
        return [] if words == [*FAIL_ON, UNSUPPORTED] else words or [NOTHING]

    @classmethod
    def of(
        cls,
        fail_on: Iterable[str] = (),
        accepted: DifferenceBaseline | None = None,
        *,
        is_embedded: bool = False,
    ) -> Criteria:
        """
        Parse the words of `--fail-on`.

        Args:
            fail_on: Words, several of them separated by commas; without any, the default.
            accepted: Differences that do not fail.
            is_embedded: Whether the target is the embedded broker: what it can't do is known, and
                by default no failure.

        Raises:
            UsageError: A word is unknown.
        """
        words = [word.strip() for text in fail_on for word in text.split(",") if word.strip()]
        baseline = accepted or DifferenceBaseline()
        if not words:
            return cls(accepted=baseline, wants_support=not is_embedded)
        limits = tuple(
            _limit(word, "--fail-on") for word in words if word.lower().startswith("latency")
        )
        plain = [word.lower() for word in words if not word.lower().startswith("latency")]
        for word in plain:
            if word not in (*FAIL_ON, UNSUPPORTED, UNBALANCED, NOTHING):
                names = ", ".join([*FAIL_ON, UNSUPPORTED, UNBALANCED, NOTHING, "latency:p99>2x"])
                raise UsageError(f"--fail-on takes {names}, not {word!r}")
        verdicts = frozenset(FAIL_ON[word] for word in plain if word in FAIL_ON)
        return cls(verdicts, limits, baseline, UNBALANCED in plain, UNSUPPORTED in plain)


def latency_limits(texts: Iterable[str]) -> tuple[Limit, ...]:
    """
    Parse limits of latency, with or without the `latency:` of `--fail-on`.

    Raises:
        UsageError: A limit is invalid.
    """
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    return tuple(
        _limit(
            word if word.lower().startswith("latency:") else f"latency:{word}", "--latency-limit"
        )
        for word in words
    )


def _limit(text: str, option: str) -> Limit:
    found = _LIMIT.fullmatch(text)
    names = {name.lower(): name for name in NAMES.values()}
    percent = 0 if found is None else 100 if found[2].lower() == "max" else int(found[2][1:])
    if found is None or not 1 <= percent <= 100:
        raise UsageError(
            f"{option} {text!r} is not a limit: write latency:p99>2x, latency:max>500ms or "
            "latency:Produce:p50>1.5x"
        )
    if found[1] and found[1].lower() not in names:
        raise UsageError(f"{option} {text!r} names no API")
    api = names[found[1].lower()] if found[1] else ""
    return Limit(text, api, percent, float(found[3]), found[4].lower() == "x")
