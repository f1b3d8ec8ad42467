"""
Writes docs/gallery.md: how brokers differ from Kafka by the rules of `conform --target`.

    python -m tools.gallery [--write]

Needs Java and Maven for Kafka's releases, and kfakeserver in PATH or named by $KFAKE (its source is
tests/replay/support/kfake_server.go). Without one of them nothing is written.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import conform.probe.probes  # noqa: F401 (adds its rules to the registry)
from conform.registry.rule import REGISTRY
from conform.rule_selection import sort_rules
from dissector.view.text.generated_part import with_generated
from tests.broker.server_properties import Shape
from tests.conform.probe.explained_mock import KILLED
from tools.record.clusters import start
from tools.record.scenario import Mock
from tools.site.markup import escaped, table

PAGE = Path(__file__).parents[1] / "docs" / "gallery.md"
BEGIN, END = "<!-- gallery, by tools.gallery -->\n", "<!-- end of the gallery -->"

KEPT, UNJUDGED, ENDS = "kept", "not judged", "ends it"

_VARYING = re.compile(r"\b\d+\.\d+\.\d+\.\d+:\d+|\b[\w-]*[0-9a-f]{8}-[0-9a-f]{4}[\w-]*")
"""Addresses and generated names in what was found."""


class Broker(NamedTuple):
    """
    A broker of the gallery.

    Attributes:
        name: Its name and version.
        running: Starts it, and returns its address.
        ended_by: Rules whose probes end it; they are left out.
    """

    name: str
    running: Callable[[], AbstractContextManager[str]]
    ended_by: frozenset[str] = frozenset()


class Verdict(NamedTuple):
    """
    What the rules say of a broker.

    Attributes:
        cells: By rule: its worst severity, `KEPT`, `UNJUDGED` or `ENDS`.
        found: By rule: what was found first.
    """

    cells: dict[str, str]
    found: dict[str, str]

    def count(self, cell: str) -> int:
        """Return the number of rules with a cell."""
        return sum(each == cell for each in self.cells.values())


@contextlib.contextmanager
def _cluster(shape: Mock | Shape) -> Iterator[str]:
    with start(shape) as found:
        yield found.bootstrap


@contextlib.contextmanager
def _kfake() -> Iterator[str]:
    program = os.environ.get("KFAKE") or shutil.which("kfakeserver")
    if program is None:
        raise SystemExit("tools.gallery: kfakeserver is missing, name it by $KFAKE")
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


BROKERS = (
    *(
        Broker(f"Kafka {version}", partial(_cluster, Shape(version)))
        for version in ("3.9.2", "4.0.0", "4.3.1", "4.4.0")
    ),
    Broker("librdkafka's mock cluster", partial(_cluster, Mock()), frozenset(KILLED)),
    Broker("kfake", _kfake, frozenset({"F12"})),
)


def verdict_of(broker: Broker) -> Verdict:
    """Start a broker, and check it."""
    left_out = [word for each in sorted(broker.ended_by) for word in ("--ignore", each)]
    with broker.running() as address:
        command = [sys.executable, "-m", "kafkashark", "conform", "--target", address]
        done = subprocess.run(
            [*command, "--allow-writes", "-T", "ndjson", *left_out],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(f"tools.gallery: {broker.name}: {done.stderr.strip()[-300:]}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return verdict_in(rows, broker.ended_by)


def verdict_in(rows: list[dict[str, Any]], ended_by: frozenset[str] = frozenset()) -> Verdict:
    """Return the verdict of the rows of `conform -T ndjson`."""
    found: dict[str, str] = {}
    severity: dict[str, str] = {}
    order = ("error", "warning", "note")
    for row in rows:
        if row["section"] == "finding":
            text = _VARYING.sub("...", row["found"])
            found.setdefault(row["rule"], text)
            worst = severity.get(row["rule"], "note")
            severity[row["rule"]] = min(worst, row["severity"], key=order.index)
    judged = {row["rule"]: row["judged"] for row in rows if row["section"] == "rule"}
    cells = {
        rule: severity.get(rule, KEPT if count else UNJUDGED) for rule, count in judged.items()
    }
    return Verdict({**cells, **dict.fromkeys(ended_by, ENDS)}, found)


def gallery(verdicts: dict[str, Verdict]) -> str:
    """Return the tables in Markdown, of verdicts by the names of brokers."""
    return "\n".join(_lines(verdicts))


def _lines(verdicts: dict[str, Verdict]) -> Iterator[str]:
    rules = sort_rules(each for each in REGISTRY.values() if each.on == "live")
    cells = (KEPT, "error", "warning", "note", UNJUDGED, ENDS)
    yield f"{len(rules)} rules, {len(verdicts)} brokers."
    yield ""
    yield from table(
        ("broker", *cells),
        ((name, *(str(each.count(cell)) for cell in cells)) for name, each in verdicts.items()),
    )
    yield from ("", "## Rules that not all keep", "")
    differing = [
        rule for rule in rules if any(each.cells.get(rule.id) != KEPT for each in verdicts.values())
    ]
    yield from table(
        ("rule", *verdicts),
        (
            (
                f"{rule.id} {escaped(rule.title)}",
                *(each.cells.get(rule.id, UNJUDGED) for each in verdicts.values()),
            )
            for rule in differing
        ),
    )
    kept = [rule.id for rule in rules if rule not in differing]
    yield from ("", f"All keep {', '.join(kept)}." if kept else "No rule is kept by all.")
    for name, verdict in verdicts.items():
        if verdict.found:
            yield from ("", f"## What {name} does", "")
            rows = ((rule, escaped(text)) for rule, text in verdict.found.items())
            yield from table(("rule", "found"), rows)


def main(arguments: list[str]) -> None:
    """Print the tables, or write them to the page."""
    if arguments not in ([], ["--write"]):
        raise SystemExit("python -m tools.gallery [--write]")
    verdicts = {}
    for broker in BROKERS:
        print(f"tools.gallery: {broker.name}", file=sys.stderr)
        verdicts[broker.name] = verdict_of(broker)
    text = gallery(verdicts)
    if arguments:
        PAGE.write_text(with_generated(PAGE.read_text(), (BEGIN, END), f"\n{text}\n\n"))
    else:
        print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
