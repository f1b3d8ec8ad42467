"""
A baseline: accepted findings, one per line, that do not fail a build.

A line is the common key of equal findings in one version of an API, without addresses, numbers and
software versions, so it is the same in each run. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from conform.registry.verdict import Kind, Verdict, finding_key
from dissector.errors import UsageError
from dissector.small_files import read_small_text
from dissector.view.text.escape import escaped

_HEADING = (
    "# Findings of `kafkashark conform` that are known and fail no build.",
    "# rule | who | software | API and version | field | what",
)
_LINE = re.compile(r"[A-Z]\d\d\|(client|broker)\|[^|]*\|[^|]*\|[^|]*\|.")


def baseline_line(kind: Kind, version: int | None = None) -> str:
    """Return the line of a kind of findings in an API version; None: without a version."""
    first = kind.first
    software = first.software.partition(" ")[0]
    api = first.api if version is None else f"{first.api} v{version}"
    return escaped(finding_key(first.rule, first.side, software, api, first.path, first.found))


def baseline_lines_of(kind: Kind) -> set[str]:
    """Return the lines of a kind of findings, one for each version."""
    return {baseline_line(kind, version) for version in kind.versions}


def baseline_lines(verdict: Verdict) -> Iterator[str]:
    """Yield a baseline with all findings of a verdict."""
    yield from _HEADING
    yield from sorted({line for kind in verdict for line in baseline_lines_of(kind)})


def read_baseline(file: Path) -> set[str]:
    """
    Read the lines of a baseline.

    Raises:
        UsageError: The file can't be read, or is not a baseline.
    """
    lines = read_small_text(file).splitlines()
    found = set()
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            if not _LINE.match(line):
                raise UsageError(
                    f"{file}: line {number} is not a line of a baseline; "
                    "--write-baseline writes one"
                )
            found.add(line)
    if not found and _HEADING[0] not in lines:
        raise UsageError(f"{file}: is not a baseline; --write-baseline writes one")
    return found


def apply_baseline(verdict: Verdict, lines: set[str]) -> set[str]:
    """Mark the findings that are in the baseline; return the lines without a matching finding."""
    matched = set()
    for kind in verdict:
        kind_lines = baseline_lines_of(kind)
        kind.known = kind_lines <= lines
        matched |= kind_lines
    return lines - matched
