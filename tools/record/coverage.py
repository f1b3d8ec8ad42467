"""
API versions in the captures, compared with all versions.

`python -m tools.record.coverage` writes `captures/COVERAGE.md`.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dissector import dissect
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis
from tools.record.manifest import keylogs

PAGE = "COVERAGE.md"
CAPTURES = Path(__file__).parents[2] / "captures"

Pair = tuple[int, int]
"""An API key and a version."""

By = Literal["real", "sweep"]
"""Sender: a real client or broker, or a sweep program that sends all versions."""

_BY: tuple[By, By] = ("real", "sweep")
_SWEEPERS = {"kafkashark-sweep", "sweep"}

_HEAD = """\
# Versions of APIs in the captures

Written from the captures by `python -m tools.record.coverage`; [README.md](README.md) describes
the captures. *Real* are clients and brokers in common use, *sweep* are programs that send every
version a broker offers. A response counts if the declaration of its version reads it to its last
byte; error responses count as well. A column is empty if no capture has the version, or a response
to it.
"""


@dataclass
class WireVersions:
    """The API versions on the wire."""

    requests: dict[By, set[Pair]] = field(default_factory=lambda: {"real": set(), "sweep": set()})
    responses: dict[By, set[Pair]] = field(default_factory=lambda: {"real": set(), "sweep": set()})

    def add(self, exchange: Exchange, swept: bool) -> None:
        """Count an exchange; `swept` marks captures of a sweep."""
        request, response = exchange.request, exchange.response
        if request is None or request.api_key is None or request.schema is None:
            return  # an orphan, a raw SASL token, an undeclared version
        pair = request.api_key, request.api_version or 0
        # A header without a client id (ControlledShutdown v0) does not identify the client.
        name = request.client_id
        by: By = "sweep" if name in _SWEEPERS or (swept and name is None) else "real"
        if request.body is not None and not request.problems:
            self.requests[by].add(pair)
        if response is not None and response.body is not None and not response.problems:
            self.responses[by].add(pair)


def look(captures: Iterable[Path]) -> WireVersions:
    """Read captures."""
    seen = WireVersions()
    for path in captures:
        for exchange in dissect(path, keylogs=keylogs(path)):
            seen.add(exchange, "-sweep-" in path.name)
    return seen


def page(seen: WireVersions) -> str:
    """Write the page."""
    apis = all_apis()
    existing = {(each.key, version) for each in apis for version in each.request.versions}
    requests, responses = (_all(side) & existing for side in (seen.requests, seen.responses))
    total = len(existing)
    lines = [
        _HEAD,
        f"- {total} versions of {len(apis)} APIs exist.",
        f"- Requests: {len(requests)} of {total}; "
        f"{len(seen.requests['real'])} of them by real clients and brokers.",
        f"- Responses: {len(responses)} of {total}; "
        f"{len(seen.responses['real'])} of them to real clients and brokers.",
        f"- Never answered: {_missing(apis, responses)}.",
        "",
        "| key | API | versions | requests: real | requests: sweep | responses: real "
        "| responses: sweep | never answered |",
        "|---:|---|---|---|---|---|---|---|",
    ]
    for each in apis:
        cells = [
            str(each.key),
            each.name,
            spans(each.request.versions),
            *(
                spans(version for key, version in side[by] if key == each.key)
                for side in (seen.requests, seen.responses)
                for by in _BY
            ),
            spans(set(each.request.versions) - {v for key, v in responses if key == each.key}),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _all(side: dict[By, set[Pair]]) -> set[Pair]:
    return side["real"] | side["sweep"]


def _missing(apis: list[Api], answered: set[Pair]) -> str:
    missing: dict[str, list[int]] = defaultdict(list)
    for each in apis:
        for version in each.request.versions:
            if (each.key, version) not in answered:
                missing[each.name].append(version)
    return ", ".join(f"{name} {spans(versions)}" for name, versions in missing.items()) or "none"


def spans(versions: Iterable[int]) -> str:
    """Return versions as ranges: `0-3, 5`; empty without any."""
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and version == runs[-1][-1] + 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def captures_in(folder: Path) -> list[Path]:
    """Return the captures in a folder, sorted by name."""
    return sorted(folder.glob("*.pcap*"))


def write(folder: Path) -> None:
    """Write the page of a folder of captures."""
    (folder / PAGE).write_text(page(look(captures_in(folder))), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.record.coverage", description=__doc__)
    parser.add_argument("--captures", type=Path, default=CAPTURES, metavar="DIR")
    write(parser.parse_args(arguments).captures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
