"""Clients of other languages: kafkajs by npm; franz-go, sarama and kafka-go by go."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from tests.broker.artifacts import cache_folder
from tools.record.scenario import KAFKA_4, KAFKA_39, Stage, scenario

_PROGRAMS = Path(__file__).parents[1] / "programs"
_PATIENCE_S = 300
_SHOWS = "producers, a group of two, transactions, admin calls"
_SARAMA = "plain, idempotent and transactional producers; a group of two; ends of partitions"
_KAFKA_GO = "writers with every codec, a group of two that commits each message"


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
    """Run a client's installer; without a network the client counts as not installed."""
    try:
        _run(command)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        raise FileNotFoundError(f"can't be fetched: {error}") from error


@scenario("kafka4-kafkajs", f"kafkajs: {_SHOWS}", client="kafkajs", cluster=KAFKA_4)
@scenario("kafka39-kafkajs", f"kafkajs: {_SHOWS}", client="kafkajs", cluster=KAFKA_39)
def kafkajs(stage: Stage) -> None:
    play_node([], stage.bootstrap, stage.topic())


def play_node(options: list[str], *arguments: str) -> None:
    """Run the program of kafkajs with these options of Node."""
    modules = str(_installed() / "node_modules")
    program = str(_PROGRAMS / "kafkajs.js")
    _run(["node", *options, program, *arguments], NODE_PATH=modules)


def _installed() -> Path:
    """Return the folder of the client, which is installed completely or not at all."""
    wanted = (_PROGRAMS / "package.json").read_bytes()
    folder = cache_folder() / f"kafkajs-{sha256(wanted).hexdigest()[:8]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            made = Path(name) / folder.name
            made.mkdir()
            (made / "package.json").write_bytes(wanted)
            _fetch(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(made)])
            with suppress(OSError):  # another process was faster
                made.rename(folder)
    return folder


@scenario("kafka4-franz-go", f"franz-go: {_SHOWS}", client="franz-go", cluster=KAFKA_4)
@scenario("kafka44-franz-go", f"franz-go: {_SHOWS}", client="franz-go", cluster=KAFKA_4)
@scenario("kafka39-franz-go", f"franz-go: {_SHOWS}", client="franz-go", cluster=KAFKA_39)
def franz_go(stage: Stage) -> None:
    play_go("franz", stage.bootstrap, stage.topic())


@scenario("kafka4-sarama", f"sarama: {_SARAMA}", client="sarama", cluster=KAFKA_4)
@scenario("kafka39-sarama", f"sarama: {_SARAMA}", client="sarama", cluster=KAFKA_39)
def sarama(stage: Stage) -> None:
    play_go("sarama", stage.bootstrap, stage.topic())


@scenario("kafka4-kafka-go", f"kafka-go: {_KAFKA_GO}", client="kafka-go", cluster=KAFKA_4)
@scenario("kafka39-kafka-go", f"kafka-go: {_KAFKA_GO}", client="kafka-go", cluster=KAFKA_39)
def kafka_go(stage: Stage) -> None:
    play_go("kafkago", stage.bootstrap, stage.topic())


def play_go(name: str, *arguments: str) -> None:
    """Build and run a program in Go."""
    with tempfile.TemporaryDirectory() as folder:  # others may build it at the same time
        _run([built_go(name, Path(folder)), *arguments])


def built_go(name: str, folder: Path, package: str = ".") -> str:
    """Build a program in Go into a folder, and return its path."""
    program = str(_PROGRAMS / name)
    _fetch(["go", "-C", program, "mod", "download"])
    binary = str(folder / name)
    _run(["go", "build", "-C", program, "-o", binary, package])
    return binary
