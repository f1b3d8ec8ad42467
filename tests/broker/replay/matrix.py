"""
`python -m tests.broker.replay.matrix`: honest replays of scenes at real clusters, several times.

Each run has a line; at its end a table counts those that passed. With `--done FILE` the runs of an
earlier call are not repeated, so that it goes on where that one stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from replay import Plan, Report
from replay.report.report import text_lines
from tests.broker.kafka_cluster import Cluster, running
from tests.broker.replay.support.honest_scenes import (
    MORE_SCENES,
    SCENES,
    SCENES_39,
    SETTINGS,
    Scene,
    play,
)
from tests.broker.server_properties import Shape

ALL = SCENES | MORE_SCENES | SCENES_39
_SIDE_BY_SIDE = 5
"""Runs at the captured speed at once: they mostly wait."""


class Run(NamedTuple):
    """A replay: target version and nodes, scene, speed (0 for as fast as possible), number."""

    version: str
    nodes: int
    scene: str
    speed: float
    number: int

    def __str__(self) -> str:
        pace = f"speed {self.speed:g}" if self.speed else "speed max"
        return f"{self.scene} -> {self.version}, {self.nodes} nodes, {pace}, run {self.number}"


class Results:
    """
    The results of runs, by their names, and the file that keeps them.

    Args:
        path: The file; None for none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.of: dict[Run, str] = {Run(*run): result for run, result in map(json.loads, lines)}

    def add(self, run: Run, result: str) -> None:
        """Keep and print a result; it is empty if the run was right."""
        self.of[run] = result
        print(f"{run}: {result or 'as captured'}", flush=True)
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([run, result]) + "\n")


def main() -> int:
    """Play them; status 1 if any was not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.replay.matrix")
    parser.add_argument("scenes", nargs="*", help=f"by default all: {', '.join(ALL)}")
    parser.add_argument("--version", action="append", help="of the target, by default 4.x")
    parser.add_argument("--nodes", action="append", type=int, help="1 or 3, by default both")
    parser.add_argument("--speed", action="append", type=float, help="0 for max; by default 0, 1")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--done", type=Path, help="file with the results, also of earlier calls")
    options = parser.parse_args()
    if unknown := set(options.scenes) - ALL.keys():
        parser.error(f"no scene is called {', '.join(sorted(unknown))}")
    runs = [
        Run(version, nodes, scene, speed, number)
        for version in options.version or ["4.x"]
        for nodes in options.nodes or [1, 3]
        for scene in options.scenes or ALL
        if ALL[scene].plays_on(nodes)
        for speed in options.speed or [0.0, 1.0]
        for number in range(options.runs)
    ]
    results = Results(options.done)
    todo = [run for run in runs if run not in results.of]
    with tempfile.TemporaryDirectory() as folder:
        for shape, group in groupby(todo, lambda run: (run.version, run.nodes)):
            with running(Shape(*shape, properties=SETTINGS)) as cluster:
                for _, same in groupby(group, lambda run: (run.scene, run.speed)):
                    _play(list(same), cluster, Path(folder), results)
    print(*_table(runs, results), sep="\n")
    return int(any(results.of[run] for run in runs))


def _play(runs: list[Run], cluster: Cluster, folder: Path, results: Results) -> None:
    """Play runs of one scene and speed."""
    scene, speed = ALL[runs[0].scene], runs[0].speed
    try:
        capture = scene.capture(runs[0].scene, folder)
    except FileNotFoundError as error:
        for run in runs:
            results.add(run, str(error))
        return
    at_once = _SIDE_BY_SIDE if speed else 1
    with Plan.of(capture, allow=scene.allow) as plan:
        for first in range(0, len(runs), at_once):
            part = runs[first : first + at_once]
            begun = time.monotonic()
            reports = asyncio.run(_reports(plan, cluster, part, scene))
            for run, report in zip(part, reports, strict=True):
                results.add(run, _result(report, scene, run))
            print(f"  {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


async def _reports(plan: Plan, cluster: Cluster, runs: list[Run], scene: Scene) -> list[Report]:
    plays = (play(plan, cluster.bootstrap(), run.speed, scene) for run in runs)
    return await asyncio.gather(*plays)


def _result(report: Report, scene: Scene, run: Run) -> str:
    """Return what is wrong; empty if nothing is."""
    if scene.is_right(report, run.nodes):
        return ""
    print(*text_lines(report), sep="\n", file=sys.stderr, flush=True)
    return report.ended or str(report.summary()["first_difference"] or "something else failed")


def _table(runs: list[Run], results: Results) -> Iterator[str]:
    """Yield a table: a row for each scene, a column for each target and speed."""
    cells: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        column = f"{run.version} x{run.nodes} {f'{run.speed:g}' if run.speed else 'max'}"
        cells[run.scene][column].append(not results.of[run])
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    width = max(map(len, cells)) + 2
    yield "scene".ljust(width) + "  ".join(columns)
    for scene, row in cells.items():
        counts = (
            f"{sum(row[column])}/{len(row[column])}" if column in row else "" for column in columns
        )
        yield scene.ljust(width) + "  ".join(
            count.ljust(len(column)) for count, column in zip(counts, columns, strict=True)
        )


if __name__ == "__main__":
    sys.exit(main())
