"""
A baseline: findings that are known, a line each, so that they fail no build.

A line is what equal findings have in common, without addresses, numbers and versions of software:
it stays the same from run to run. Lines that begin with `#` say something to people.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conform.verdict import Kind, Verdict, finding_key
from dissector.errors import UsageError
from dissector.view.escape import escaped

_HEADING = (
    "# Findings of `kafkashark conform` that are known and fail no build.",
    "# rule | who | software | API | field | what",
)


def line_of(kind: Kind) -> str:
    """Return the line that stands for a kind of findings."""
    first = kind.first
    software = first.software.partition(" ")[0]
    return escaped(
        finding_key(first.rule, first.side, software, first.api, first.path, first.found)
    )


def baseline_lines(verdict: Verdict) -> Iterator[str]:
    """Yield a baseline that knows all findings of a verdict."""
    yield from _HEADING
    yield from sorted({line_of(kind) for kind in verdict})


def read_baseline(file: Path) -> set[str]:
    """
    Read the lines of a baseline.

    Raises:
        UsageError: It can't be read.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "is no text"
        raise UsageError(f"{file}: {what}") from error
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def apply(verdict: Verdict, lines: set[str]) -> set[str]:
    """Mark the findings that are known; return the lines that none of them matched."""
    met = set()
    for kind in verdict:
        line = line_of(kind)
        kind.known = line in lines
        met.add(line)
    return lines - met
