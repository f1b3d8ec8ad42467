"""Runs the programs of a client at a cluster, records them, and asks for advice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

from advise.public import advise
from advise.registry.advice_report import AdviceFinding
from record.public import Recorder
from tests.broker.advise import client_steps
from tests.broker.advise.old_releases import old_release
from tests.broker.advise.plans import LIMITS, Release, sides
from tests.broker.kafka_cluster import Cluster, leashed
from tests.broker.server_properties import PASSWORD, USER
from tests.waiting import child

_JAVA = Path(__file__).with_name("AdvisedClient.java")
_PATIENCE_S = 240


class ProgramError(Exception):
    """Programs ended with an error; the end of what they said."""


def findings(
    cluster: Cluster, client: str, programs: Collection[tuple[str, str]], folder: Path
) -> list[AdviceFinding]:
    """
    Run programs (advice, and side) of a client at once, and return the advice on them.

    Raises:
        MissingError: A release of the client is not there.
        ProgramError: A program failed.
    """
    chosen = [
        {"name": f"{client}.{advice}.{name}", **vars(side)}
        for advice, name, side in sides()
        if (advice, name) in programs
    ]
    paths = {name: folder / f"{client}-{name}.pcapng" for name in cluster.shape.listeners}
    with ExitStack() as stack:
        # Behind the recorder: a request whose answer is late has its own time there.
        faulty = Recorder(folder / "faulty.pcapng", to=cluster.bootstrap(), faults=_faults(chosen))
        targets = {name: cluster.bootstrap(name) for name in paths}
        targets["PLAINTEXT"] = stack.enter_context(faulty).bootstrap
        brokers = {
            name: stack.enter_context(Recorder(path, to=targets[name])).bootstrap
            for name, path in paths.items()
        }
        running = []
        for release in get_args(Release):
            own = [each for each in chosen if release in each["releases"]]
            if own:
                path = folder / f"{client}-{release}.json"
                path.write_text(json.dumps({"brokers": brokers, "programs": own}), "utf-8")
                running.append(_start(cluster, client, release, path))
                stack.enter_context(child(running[-1][0]))
        for process, said in running:
            if process.wait(_PATIENCE_S):
                raise ProgramError(said.read_text("utf-8", "replace")[-3000:])
    return [each for path in paths.values() for each in advise(path, limits=LIMITS)]


def _faults(chosen: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (f'client_id == "{each["name"]}" and api == {api}', action)
        for each in chosen
        for api, action in each["faults"]
    ]


def _start(
    cluster: Cluster, client: str, release: str, path: Path
) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a release of a client with the programs of a file; what it says is in another file."""
    old, environment = old_release(client, release), dict(os.environ)
    if client == "java":
        command = _java(cluster, [old] if old else [], path)
    else:
        command = [sys.executable, "-m", client_steps.__name__, client, str(path)]
        environment |= {"PYTHONPATH": f"{old}{os.pathsep}."} if old else {}
    said = path.with_suffix(".txt")
    with said.open("wb") as file:
        process = subprocess.Popen(
            leashed(command), stdin=subprocess.PIPE, stdout=file, stderr=file, env=environment
        )
    return process, said


def _java(cluster: Cluster, first: list[Path], path: Path) -> list[str]:
    """Compile with the newest jars, and return the command with old ones before them."""
    classes = path.parent / "classes"
    if not classes.exists():
        compiler = ["javac", "-d", str(classes), "-cp", cluster.jars.classpath, str(_JAVA)]
        subprocess.run(compiler, check=True, capture_output=True)
    java, *words = cluster.jars.java(_JAVA.stem, str(path), USER, PASSWORD, heap_mb=256)
    at = words.index("-cp") + 1
    words[at] = os.pathsep.join(map(str, [classes, *first, words[at]]))
    return [java, *words]
