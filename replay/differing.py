"""The differences of a report: each with its request, and by field in the order of the requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dissector.protocol.error_codes import error_name
from dissector.view.values import jsonable
from replay.accepted import BY_FILE, BY_GAP, Accepted, Place
from replay.kept import Kept
from replay.noise import of_any
from replay.outcome import Difference
from replay.payloads import hidden
from replay.tallies import EXAMPLES, Row, Seen

_MOST_PLACES = 2000
"""When there are so many, settings, whose names a capture chooses, are no more told apart."""

At = tuple[int, int]
"""Pass and step."""


@dataclass(frozen=True, slots=True)
class Found:
    """
    A difference in its place.

    Attributes:
        difference: The difference.
        place: What it has in common with its equals.
        accepted: What accepts it; empty for nothing.
    """

    difference: Difference
    place: Place
    accepted: str


@dataclass(slots=True)
class _Seen:
    """How often equal differences were found, and the first of them."""

    count: int = 0
    first: list[tuple[At, Row]] = field(default_factory=list)

    def add(self, at: At, row: Row) -> None:
        """Count one; answers do not come in the order of their requests."""
        self.count += 1
        if len(self.first) < EXAMPLES or at < self.first[-1][0]:
            self.first.append((at, row))
            self.first.sort(key=lambda each: each[0])
            del self.first[EXAMPLES:]


class Differing:
    """
    Collects differences.

    Args:
        accepted: Those that are accepted.
        shows_payloads: Whether keys, values and headers of records are shown.
    """

    def __init__(self, accepted: Accepted, shows_payloads: bool) -> None:
        self._accepted = accepted
        self._shows_payloads = shows_payloads
        self._kept = Kept()
        self._places: dict[tuple[Place, str], _Seen] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def accepted_count(self) -> int:
        """How many are accepted."""
        return sum(seen.count for (_, accepted), seen in self._places.items() if accepted)

    def find(
        self, api: str, differences: Iterable[Difference], by_gap: bool = False
    ) -> list[Found]:
        """Return differences in their places; `by_gap` are those that follow from lost packets."""
        found = []
        for each in differences:
            place = Place.of(api, each, by_setting=len(self._places) < _MOST_PLACES)
            accepted = BY_GAP if by_gap else self._accepted.by(api, place, each)
            found.append(Found(each, place, accepted))
        return found

    def add(self, request: Row, found: Found) -> None:
        """
        Keep a difference.

        Args:
            request: Which request it belongs to, and the verdict on its answer.
            found: The difference.
        """
        difference = found.difference
        sides = _told(difference, difference.captured), _told(difference, difference.replayed)
        if not self._shows_payloads:
            sides = hidden(difference.path, *sides)
        row = {
            **request,
            "accepted": found.accepted,
            "path": difference.path,
            "captured": sides[0],
            "replayed": sides[1],
        }
        seen = self._places.setdefault((found.place, found.accepted), _Seen())
        seen.add((row["copy"], row["step"]), row)
        self._kept.add(row)

    def rows(self, most: int | None = None) -> Iterator[Row]:
        """Yield them in the order in which they came up; the first so many."""
        return self._kept.rows(most)

    def place_rows(self) -> list[Row]:
        """Return them by field, error codes also by both errors; see `Report.place_rows`."""
        found = sorted(self._places.items(), key=lambda item: item[1].first[0][0])
        return [
            {
                "place": place.pattern,
                "errors": place.errors,
                "count": seen.count,
                "first_step": seen.first[0][0][1],
                "first_pass": seen.first[0][0][0],
                "accepted": accepted,
                "examples": [row for _, row in seen.first],
            }
            for (place, accepted), seen in found
        ]

    @property
    def places(self) -> dict[str, Seen]:
        """How often each field differs, by the pattern for any setting, with examples."""
        found: dict[str, Seen] = {}
        for (place, _), seen in self._places.items():
            known = found.setdefault(of_any(place.pattern), Seen())
            known.count += seen.count
            known.examples += [row for _, row in seen.first]
        return found

    def acceptable(self) -> list[Place]:
        """Return the fields that differ, but for what an upgrade brings or lost packets cause."""
        return [place for place, accepted in self._places if accepted in ("", BY_FILE)]


def _told(difference: Difference, value: Any) -> Any:
    """Return a value as it is told: error codes by their names."""
    if difference.is_error and isinstance(value, int):
        return error_name(value)
    return jsonable(value)
