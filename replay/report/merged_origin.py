"""Captures, options and targets of several reports as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from replay.model.row import Row


class MergedOrigin:
    """
    The captures, options and targets of several reports.

    Args:
        reports: The name of each report, and its row of captures, options and target.

    Attributes:
        missing_parts: Parts of the capture without a report.
    """

    def __init__(self, reports: Sequence[tuple[str | Path, Row]]) -> None:
        self._files = [str(file) for file, _ in reports]
        self._rows = [row for _, row in reports]
        self._parts = _distinct(part for row in self._rows for part in row["parts"])
        self.missing_parts = _missing(self._parts)

    def row(self) -> Row:
        """Return them as a row of the report."""
        rows = self._rows
        first = [row["first_request"] for row in rows if row["first_request"]]
        last = [row["last_request"] for row in rows if row["last_request"]]
        return {
            "kafkashark": ", ".join(dict.fromkeys(row["kafkashark"] for row in rows)),
            "replayed_at": min(row["replayed_at"] for row in rows),
            "captures": _distinct(each for row in rows for each in row["captures"]),
            "first_request": min(first, default=None),
            "last_request": max(last, default=None),
            "clients": self._clients(),
            "options": self._options(),
            "target": max((row["target"] for row in rows), key=len),
            "parts": self._parts,
            "reports": self._files,
        }

    def _clients(self) -> list[Row]:
        """Return the connections of each client; replays of the same requests count once."""
        counts: Counter[str] = Counter()
        sources = _distinct((source_of(row), row["clients"]) for row in self._rows)
        for _, clients in sources:
            for each in clients:
                counts[each["software"]] += each["connections"]
        return [{"software": name, "connections": count} for name, count in counts.most_common()]

    def _options(self) -> Row:
        """Return the options; those that differ have a list of values."""
        found: Row = {}
        for row in self._rows:
            for name, value in row["options"].items():
                known = found.setdefault(name, value)
                if known != value:
                    found[name] = _distinct(_values(known) + _values(value))
        return found


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the distinct values in their order."""
    found: list[Any] = []
    for each in values:
        if each not in found:
            found.append(each)
    return found


def source_of(about: Row) -> tuple[list[Any], list[Any]]:
    """Return the captures of a report and the parts of them, whatever their names on the target."""
    return about["captures"], [(part["part"], part["of_steps"]) for part in about["parts"]]


def _missing(parts: Sequence[Row]) -> list[str]:
    """Return the parts `i/n` that are lacking beside others of the same replay."""
    found: dict[tuple[str, int, int], set[str]] = {}
    for each in parts:
        count = int(each["part"].partition("/")[2])
        found.setdefault((each["names"], each["of_steps"], count), set()).add(each["part"])
    return [
        part
        for (_, _, count), present in found.items()
        for part in (f"{number}/{count}" for number in range(1, count + 1))
        if part not in present
    ]
