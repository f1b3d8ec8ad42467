"""What is wrong with the lines of a log: counted by kind, and named with the first lines."""

from __future__ import annotations

from dissector.errors import Problem

_NAMED = 3
_MAX_KINDS = 50


class LineProblems:
    """The problems of one log."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}
        self._counts: dict[str, int] = {}
        self._more = 0

    def add(self, what: str, line: int) -> None:
        """Count a problem of a line."""
        if what not in self._counts and len(self._counts) >= _MAX_KINDS:
            self._more += 1
            return
        self._counts[what] = self._counts.get(what, 0) + 1
        lines = self._lines.setdefault(what, [])
        if lines[-1:] == [line]:
            self._counts[what] -= 1
        elif len(lines) < _NAMED:
            lines.append(line)

    def take(self) -> list[Problem]:
        """Return a problem for each kind, and forget them."""
        found = self.found()
        self._lines, self._counts, self._more = {}, {}, 0
        return found

    def found(self) -> list[Problem]:
        """Return a problem for each kind."""
        problems = []
        for what, lines in self._lines.items():
            more = self._counts[what] - len(lines)
            places = ", ".join(map(str, lines)) + f" and {more:,} more" * (more > 0)
            word = "lines" if len(lines) > 1 else "line"
            problems.append(Problem(f"{word} {places}: {what}"))
        if self._more:
            problems.append(Problem(f"{self._more:,} more lines with problems of other kinds"))
        return problems
