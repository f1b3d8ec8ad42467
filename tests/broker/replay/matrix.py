"""`python -m tests.broker.replay.matrix`: replays captures repeatedly at several clusters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from replay import Pace, Plan, replay
from replay.report.report import Report, text_lines
from tests.broker.kafka_cluster import running
from tests.broker.replay.support.releases import beside_releases
from tests.broker.server_properties import Shape
from tools.record.manifest import read

CAPTURES = Path(__file__).parents[3] / "captures"

_CLIENTS = ("connect", "streams", "streams-group", "aiokafka-copies", "sarama", "kafka-go")
_TIMEOUT_S = 10


def main() -> int:
    """Replay them; status 1 for differences not explained by releases."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.replay.matrix")
    parser.add_argument("captures", nargs="*", help="files; by default of clients that run much")
    parser.add_argument("--version", action="append", help="4.x, 3.9.x, or a release such as 4.1.1")
    parser.add_argument("--nodes", action="append", type=int)
    parser.add_argument("--speed", action="append", type=float, help="0 for as fast as possible")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    shapes = product(options.version or ["4.x", "3.9.x"], options.nodes or [1, 3])
    differ = 0
    for version, nodes in shapes:
        with running(Shape(version, nodes)) as cluster:
            rounds = product(range(options.runs), options.speed or [0, 1])
            for number, (_, speed) in enumerate(rounds):
                for capture in options.captures or _recorded(version):
                    prefix = f"m{number}-"
                    report = _played(capture, cluster.bootstrap(), prefix, speed)
                    found = beside_releases(report)
                    is_well = not (found or report.ended or report.failures or report.refusals)
                    differ += not is_well
                    outcome = "as captured" if is_well else f"{sorted(found)} {report.ended}"
                    title = f"{Path(capture).stem} -> {version}, {nodes} nodes, speed {speed:g}"
                    print(f"{title}: {outcome}", flush=True)
                    if not is_well:
                        print(*text_lines(report), sep="\n", file=sys.stderr, flush=True)
    return 1 if differ else 0


def _recorded(version: str) -> Iterator[Path]:
    """Yield captures of clients with several connections, for a target."""
    for name, entry in read(CAPTURES).items():
        _, _, client = name.partition("-")
        # Kafka 3.9 has no streams groups.
        if client in _CLIENTS and not (client == "streams-group" and version.startswith("3.")):
            yield CAPTURES / entry.file


def _played(capture: str | Path, to: str, prefix: str, speed: float) -> Report:
    # Responses about all topics include those of other runs.
    with Plan.of(capture) as plan:
        noise = ("Metadata.topics",)
        return replay(plan, to, pace=Pace(speed), prefix=prefix, timeout_s=_TIMEOUT_S, noise=noise)


if __name__ == "__main__":
    sys.exit(main())
