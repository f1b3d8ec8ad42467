"""
The captures of the corpus, and those that a comparison reads in `make test`.

A comparison, such as of columns with objects, applies to each capture. All captures in each
comparison would take minutes, with little benefit. So in `make test` the golden files read the
smallest capture of each second kind, and each other comparison captures of its own share, so that
together they read most. The rest of a comparison's captures is marked `long`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "captures"
MADE = Path(__file__).parent / "captures"
"""Small captures made by hand for a test: of proxies, logins, and once exposed secrets."""

CAPTURES = sorted(path for path in FOLDER.iterdir() if ".pcap" in path.name)

COMPARISONS = (
    "body texts",
    "conversations",
    "export",
    "fields",
    "golden",
    "knowledge",
    "message rows",
    "objects of tcp",
    "oracle",
    "pairs",
    "record parts",
    "selection",
    "soundness",
    "verdicts",
    "words",
    "findings",
    "forgotten",
    "asked columns",
)
"""All comparisons that share the corpus."""

SHARES = 11
"""Shares of the captures: a comparison reads one of them in `make test`."""

PARTS = 6

each_part = pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.long) for part in range(PARTS)]
)
"""The shared captures in parts, for what starts another program for each of them."""


def shared_captures(shared: Path, part: int) -> list[Path]:
    """Return one part of the public captures; tshark and others read all of them but snoop's."""
    files = sorted((shared / "captures").glob("*/*cap*"))
    return [file for file in files if file.suffix != ".snoop"][part::PARTS]


def kind_of(capture: Path) -> str:
    """
    Return the kind of a capture: its client, or its scene if not named after a client.

    `kafka39-kafka-python-as-2.1.pcap` is of "kafka-python", `kafka4-sweep-data.pcap` of "sweep".
    """
    name = re.sub(r"^kafka\d+-", "", capture.name)
    found = re.match(r"kafka-(python|go)|[a-z]+", name)
    return found.group() if found else name


@cache
def representatives() -> set[Path]:
    """Return the smallest capture of each kind."""
    smallest = sorted(CAPTURES, key=lambda path: (path.stat().st_size, path.name), reverse=True)
    return set({kind_of(path): path for path in smallest}.values())


def fast(comparison: str) -> set[Path]:
    """Return the captures for a comparison in `make test`."""
    if comparison == "golden":
        return representatives()
    return set(CAPTURES[COMPARISONS.index(comparison) % SHARES :: SHARES])


def fast_and_long(fast: Iterable[Any], long: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test: those in `make test`, and further ones in long runs."""
    marked = [value if isinstance(value, tuple) else (value,) for value in long]
    return [*fast, *(pytest.param(*values, marks=pytest.mark.long) for values in marked)]


def each_capture(comparison: str, **also: Sequence[Any]) -> Any:
    """
    Return the parameters of a comparison: all captures, some only in long runs.

    Args:
        comparison: Its name.
        also: Other parameters. Each capture is combined with all of them in long runs, with one in
            short runs, changing from capture to capture.
    """
    now = fast(comparison)
    combinations = list(itertools.product(*also.values()))
    chosen = []
    for turn, path in enumerate(CAPTURES):
        for number, values in enumerate(combinations):
            short = path in now and turn % len(combinations) == number
            marks = () if short else (pytest.mark.long,)
            name = "-".join((path.name, *map(str, values)))
            chosen.append(pytest.param(path, *values, id=name, marks=marks))
    return pytest.mark.parametrize(("path", *also), chosen)
