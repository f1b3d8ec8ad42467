"""The differences of a report: one by one with their requests, and grouped by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dissector.protocol.error_codes import error_name
from dissector.view.text.value_text import jsonable
from replay.compare.ignore_rules import wildcard_pattern
from replay.compare.payload_masking import hidden
from replay.model.outcome import Difference
from replay.model.row import Row
from replay.options.difference_baseline import BY_FILE, BY_GAP, DifferenceBaseline, DifferenceKey
from replay.report.counters import MAX_EXAMPLES, ExampleCounter
from replay.report.row_spill import RowSpill

_MAX_KEYS = 2000
"""From this many keys on, settings are grouped, as their names are chosen by the capture."""

PassAndStep = tuple[int, int]
"""Pass and step."""


@dataclass(frozen=True, slots=True)
class KeyedDifference:
    """
    A difference with its key.

    Attributes:
        difference: The difference.
        key: The key shared with equal differences.
        accepted_by: The accepting criterion, such as `BY_FILE`; empty if not accepted.
    """

    difference: Difference
    key: DifferenceKey
    accepted_by: str


@dataclass(slots=True)
class _KeyCounter:
    """The number of equal differences, and the first of them."""

    count: int = 0
    examples: list[tuple[PassAndStep, Row]] = field(default_factory=list)

    def add(self, at: PassAndStep, row: Row) -> None:
        """Count a difference; keep the first ones in order of requests, not of responses."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES or at < self.examples[-1][0]:
            self.examples.append((at, row))
            self.examples.sort(key=lambda each: each[0])
            del self.examples[MAX_EXAMPLES:]

    def absorb(self, row: Row) -> None:
        """Add the count and the examples of another report."""
        for example in row["examples"]:
            self.add((example["pass"], example["step"]), example)
        self.count += row["count"] - len(row["examples"])


class DifferenceTable:
    """
    Collects differences.

    Args:
        accepted: The accepted differences.
        shows_payloads: Whether keys, values and headers of records are shown.
    """

    def __init__(self, accepted: DifferenceBaseline, shows_payloads: bool) -> None:
        self._accepted = accepted
        self._shows_payloads = shows_payloads
        self._rows = RowSpill()
        self._counters: dict[tuple[DifferenceKey, str], _KeyCounter] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def accepted_count(self) -> int:
        """The number of accepted differences."""
        return sum(seen.count for (_, accepted), seen in self._counters.items() if accepted)

    def find_keys(
        self, api: str, differences: Iterable[Difference], by_gap: bool = False
    ) -> list[KeyedDifference]:
        """Return differences with their keys; `by_gap`: accepted, as caused by lost packets."""
        found = []
        for each in differences:
            key = DifferenceKey.of(api, each, by_setting=len(self._counters) < _MAX_KEYS)
            accepted = BY_GAP if by_gap else self._accepted.accepted_by(api, key, each)
            found.append(KeyedDifference(each, key, accepted))
        return found

    def add(self, request: Row, keyed: KeyedDifference) -> None:
        """
        Add a difference.

        Args:
            request: Its request and the verdict on the response.
            keyed: The difference.
        """
        difference = keyed.difference
        sides = (
            _shown_value(difference, difference.captured),
            _shown_value(difference, difference.replayed),
        )
        if not self._shows_payloads:
            sides = hidden(difference.path, *sides)
        row = {
            **request,
            "accepted": keyed.accepted_by,
            "path": difference.path,
            "captured": sides[0],
            "replayed": sides[1],
        }
        seen = self._counters.setdefault((keyed.key, keyed.accepted_by), _KeyCounter())
        seen.add((row["pass"], row["step"]), row)
        self._rows.add(row)

    def absorb(self, fields: Iterable[Row], rows: Iterable[Row]) -> None:
        """Add the rows of another report: those by field with counts, and each difference."""
        for row in fields:
            key = DifferenceKey.shown_as(row["field"], row["errors"])
            seen = self._counters.setdefault((key, row["accepted"]), _KeyCounter())
            seen.absorb(row)
        for row in rows:
            self._rows.add(row)

    def rows(self, limit: int | None = None) -> Iterator[Row]:
        """Yield the differences in the order of their addition, at most `limit`."""
        return self._rows.rows(limit)

    def field_rows(self) -> list[Row]:
        """Return the differences by field, and by both error codes; see `Report.field_rows`."""
        found = sorted(self._counters.items(), key=lambda item: item[1].examples[0][0])
        return [
            {
                "field": key.pattern,
                "errors": key.errors,
                "count": seen.count,
                "first_step": seen.examples[0][0][1],
                "first_pass": seen.examples[0][0][0],
                "accepted": accepted,
                "examples": [row for _, row in seen.examples],
            }
            for (key, accepted), seen in found
        ]

    @property
    def fields(self) -> dict[str, ExampleCounter]:
        """The count of differences and examples for each pattern, with settings grouped."""
        found: dict[str, ExampleCounter] = {}
        for (key, _), seen in self._counters.items():
            known = found.setdefault(wildcard_pattern(key.pattern), ExampleCounter())
            known.count += seen.count
            known.examples += [row for _, row in seen.examples]
        return found

    def acceptable(self) -> list[DifferenceKey]:
        """Return the keys of the differences, except because of an upgrade or lost packets."""
        return [key for key, accepted in self._counters if accepted in ("", BY_FILE)]


def _shown_value(difference: Difference, value: Any) -> Any:
    """Return a value for the report: error codes by name."""
    if difference.is_error and isinstance(value, int):
        return error_name(value)
    return jsonable(value)
