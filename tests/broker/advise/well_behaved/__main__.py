"""Well-behaved services of six clients, recorded and advised on.

`python -m tests.broker.advise.well_behaved --minutes 30 [OUT.pcapng]` exits with 1 if there is a
finding of rank "costly". Without OUT.pcapng the recording is removed at the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from advise.public import advise
from record.public import Recorder
from tests.broker.advise.well_behaved import python_clients
from tests.broker.kafka_cluster import Cluster, leashed, running
from tests.broker.server_properties import Shape
from tests.waiting import child
from tools.record.scenarios.other_languages import built_go

_JAVA = Path(__file__).with_name("WellBehaved.java")
_GO = {"franz-go": "franz", "sarama": "sarama"}
CLIENTS = (*python_clients.CLIENTS, "java", *_GO)


def commands(
    cluster: Cluster, bootstrap: str, seconds: float, folder: Path
) -> dict[str, list[str]]:
    """Return the command of each client."""
    module = [sys.executable, "-m", python_clients.__name__]
    programs = {name: [*module, name] for name in python_clients.CLIENTS}
    programs["java"] = cluster.jars.java(str(_JAVA), heap_mb=128)
    programs |= {name: [built_go(program, folder, "./steady")] for name, program in _GO.items()}
    return {
        name: [*program, bootstrap, f"{name}.orders", str(seconds)]
        for name, program in programs.items()
    }


def run(seconds: float, path: Path) -> None:
    """
    Run all clients at once, and record them.

    Raises:
        RuntimeError: One has failed.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(running(Shape()))
        recorder = stack.enter_context(Recorder(path, to=cluster.bootstrap()))
        children = {
            name: stack.enter_context(child(_started(command)))
            for name, command in commands(cluster, recorder.bootstrap, seconds, folder).items()
        }
        failed = []
        for name, each in children.items():
            if each.wait(seconds + 300):
                failed.append(name)
        if failed:
            raise RuntimeError(f"failed: {', '.join(failed)}")


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(leashed(command), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def main() -> int:
    """Run the clients and print the advice."""
    parser = argparse.ArgumentParser(prog="tests.broker.advise.well_behaved", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("path", nargs="?", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = given.path or Path(name) / "well-behaved.pcapng"
        run(given.minutes * 60, path)
        report = advise(path)
        print(report)
        for each in report:
            print(f"{each.advice.rank} {each.advice.id} {each.subject}: {each.found}")
        return int(not report.passed)


if __name__ == "__main__":
    sys.exit(main())
