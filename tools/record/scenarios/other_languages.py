"""Clients of other languages: kafkajs (JavaScript) and franz-go (Go), fetched by npm and go."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.broker.artifacts import cache_folder
from tools.record.scenario import KAFKA_4, KAFKA_39, Stage, scenario

_PROGRAMS = Path(__file__).parents[1] / "programs"
_PATIENCE_S = 300
_SHOWS = "producers, a group of two, transactions, admin calls"


def _run(command: list[str], **environment: str) -> None:
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} is not installed")
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {(done.stdout + done.stderr)[-3000:]}")


def _fetch(command: list[str]) -> None:
    """Run what fetches a client; where there is no network it is as good as not installed."""
    try:
        _run(command)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        raise FileNotFoundError(f"can't be fetched: {error}") from error


@scenario("kafka4-kafkajs", f"kafkajs: {_SHOWS}", client="kafkajs", cluster=KAFKA_4)
@scenario("kafka39-kafkajs", f"kafkajs: {_SHOWS}", client="kafkajs", cluster=KAFKA_39)
def kafkajs(stage: Stage) -> None:
    folder = cache_folder() / "kafkajs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_bytes((_PROGRAMS / "package.json").read_bytes())
    if not (folder / "node_modules" / "kafkajs").exists():
        _fetch(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)])
    program = str(_PROGRAMS / "kafkajs.js")
    modules = str(folder / "node_modules")
    _run(["node", program, stage.bootstrap, stage.topic()], NODE_PATH=modules)


@scenario("kafka4-franz-go", f"franz-go: {_SHOWS}", client="franz-go", cluster=KAFKA_4)
@scenario("kafka39-franz-go", f"franz-go: {_SHOWS}", client="franz-go", cluster=KAFKA_39)
def franz_go(stage: Stage) -> None:
    binary = cache_folder() / "franz"
    program = str(_PROGRAMS / "franz")
    _fetch(["go", "-C", program, "mod", "download"])
    _run(["go", "build", "-C", program, "-o", str(binary), "."])
    _run([str(binary), stage.bootstrap, stage.topic()])
