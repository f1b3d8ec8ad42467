"""
Every command and every Python example in README and docs/ works as printed.

The commands of docs/cookbook.md are in `test_cookbook`, which compares all of their output.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copy
from typing import NamedTuple

import pytest

import kafkashark
from dissector.cli import main
from dissector.cli.app import COMMANDS
from dissector.cli.parsing.command_line import parse as parse_line
from dissector.cli.parsing.command_table import CommandTable
from dissector.filter import parse
from tests.definitions import vendor

ROOT = Path(__file__).parents[1]
CAPTURES = ROOT / "captures"
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if path.name != "cookbook.md"
}


class Example(NamedTuple):
    """
    A command of a page.

    Attributes:
        page: The page.
        command: The command line, from `kafkashark` on.
        printed: Lines below it; without blank ones.
        is_piped: Whether another program writes its input.
    """

    page: str
    command: str
    printed: list[str]
    is_piped: bool = False

    @property
    def words(self) -> list[str]:
        """The words after `kafkashark`, with patterns expanded as by a shell."""
        found: list[str] = []
        for word in shlex.split(self.command, comments=True)[1:]:
            is_pattern = "*" in word and f"'{word}'" not in self.command
            found += sorted(map(str, Path().glob(word))) if is_pattern else [word]
        return found


def examples_of(page: str, text: str) -> Iterator[Example]:
    """Yield the commands in the console blocks of a page, and those of a capture within lines."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            line, *printed = part.splitlines()
            before, is_piped, piped = line.rpartition("| kafkashark ")
            command = f"kafkashark {piped}" if is_piped and "'" not in before else line
            if command.startswith("kafkashark "):
                lines = [each.rstrip() for each in printed if each.strip()]
                yield Example(page, command, lines, command is not line)
    for inline in re.findall(r"`(kafkashark [^`]*\w\.pcap[^`]*)`", text):
        yield Example(page, " ".join(inline.split()), [])


EXAMPLES = [each for page, text in TEXTS.items() for each in examples_of(page, text)]

NOT_RUN = {
    r"^kafkashark \w+ -i ": "captures on a network interface",
    r"^kafkashark exporter - ": "reads a pipe, and sends to a collector",
    r"^kafkashark (browse|mcp|serve|record) ": "runs until the user ends it",
    r"^kafkashark wireshark (?!.*--no-open)": "opens a window",
    r"^kafkashark pipeline ": "needs Spark: tests/pipeline",
    r" --(to|target) (?!mock)\S+:\d+": "needs a broker",
    r" --merge ": "reads reports of other hosts: tests/replay/report",
}
"""Commands that are only parsed, and why."""


def reason_not_to_run(example: Example) -> str:
    """Return why a command is only parsed; empty for one that runs."""
    if example.is_piped:
        return "reads the output of another program"
    found = (reason for each, reason in NOT_RUN.items() if re.search(each, example.command))
    return next(found, "")


RUN = [*{each.command: each for each in EXAMPLES if not reason_not_to_run(each)}.values()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    made = tmp_path_factory.mktemp("docs")
    (made / "captures").mkdir()
    named = {name for text in TEXTS.values() for name in re.findall(r"captures/([\w.-]+)", text)}
    for name in named:
        if (CAPTURES / name).is_file():
            (made / "captures" / name).symlink_to(CAPTURES / name)
    demo, pcapng = CAPTURES / "demo.pcap", CAPTURES / "librdkafka-group-cooperative.pcapng"
    for name in ("a.pcap", "b.pcap", "big.pcap", "orders.pcap"):
        copy(demo, made / name)
    copy(demo, made / "orders.pcapng")  # a recording is served
    for name in ("monday.pcapng", "tuesday.pcapng", "prod.pcapng"):
        copy(pcapng, made / name)
    (made / "monday.pcap.gz").write_bytes(gzip.compress(demo.read_bytes()))
    copy(CAPTURES / "kafka4-java-tls13.pcap.gz", made / "tls.pcapng")
    copy(CAPTURES / "kafka4-java-tls13.keylog", made / "keys.log")
    for name, code in re.findall(
        r"```python\n# (\w+\.py)\n(.*?)```", TEXTS["docs/hooks.md"], re.DOTALL
    ):
        (made / name).write_text(code)
    (made / "schemas").mkdir()
    (made / "schemas" / "orders-value.avsc").write_text('"string"')
    (made / "redact.key").write_bytes(bytes(range(32)))
    (made / "kafkashark.toml").write_text('[filters]\nslow = "latency_ms > 50"\n')
    main(["conform", str(demo), "--write-baseline", str(made / "known.txt")])
    main(["export", str(demo), "--comments", "-o", str(made / "commented.pcapng")])
    (made / "vendor").mkdir()
    vendor(made / "vendor")
    vendor(made / "kafka-clients-5.0.0.jar")
    return made


@pytest.mark.thinned(4)
@pytest.mark.parametrize("example", RUN, ids=[f"{each.page}: {each.command}" for each in RUN])
def test_a_command_runs_and_prints_what_the_page_shows(
    example: Example,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The first command in README makes the capture for all others.
    monkeypatch.chdir(tmp_path if "--save" in example.command else folder)
    status = main(example.words)
    captured = capsys.readouterr()
    # A rule or an upgrade may find something; nothing else differs from success.
    checks = ("conform", "report", "upgrade", "replay", "secrets")
    finds = example.words[0] in checks or "--fail-on" in example.words
    assert status == 0 or (finds and status == 1), captured.err
    if example.printed:
        assert status == (example.words[0] == "secrets")
        assert_printed(example.printed, captured.out)


def assert_printed(printed: list[str], output: str) -> None:
    """Check the lines of a page; `...` stands for any number of others."""
    out = [line.rstrip() for line in output.splitlines() if line.strip()]
    at, skips = 0, True
    for line in printed:
        if line.strip() == "...":
            skips = True
            continue
        assert line in out[at:], f"no longer printed: {line}"
        assert skips or out[at] == line, f"unexpected line before it: {out[at]}"
        at += out[at:].index(line) + 1
        skips = False
    assert skips or at == len(out), "further lines without ..."


@pytest.mark.parametrize("page", TEXTS)
def test_the_options_of_commands_that_are_not_run_exist(page: str, folder: Path) -> None:
    for example in EXAMPLES:
        if example.page != page or not reason_not_to_run(example):
            continue
        name, *words = example.words
        parse_line(CommandTable(COMMANDS).find(name), words)
        if "-Y" in words:
            parse(words[words.index("-Y") + 1], records=name == "records")


def test_the_reasons_apply_to_commands() -> None:
    for pattern in NOT_RUN:
        assert [each for each in EXAMPLES if re.search(pattern, each.command)], pattern
    assert len(RUN) >= 30
    assert sum(1 for each in RUN if each.printed) >= 2
    assert len({each.page for each in EXAMPLES}) >= 10


NEEDS_SPARK = "docs/pipeline.md"
"""Its examples are run by tests/pipeline/test_pipeline_docs.py."""

CONSUME = """
from kafka import KafkaConsumer

def consume(bootstrap):
    settings = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer("demo.orders", **settings)
    assert next(consumer).value
    consumer.close()
"""
"""The client of the examples in docs/serve.md and docs/record.md."""

BLOCKS = [
    (page, block)
    for page, text in TEXTS.items()
    if page != NEEDS_SPARK
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
]
PROGRAMS = [each for each in BLOCKS if "def test_" not in each[1]]
TESTS = [each for each in BLOCKS if "def test_" in each[1]]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("page", "block"), PROGRAMS)
def test_a_python_example_runs(
    page: str,
    block: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    fields = {"transactional_id": None, "acks": 1, "timeout_ms": 1, "topic_data": []}
    given = {"body": kafkashark.codec(0, 9, "request").build(fields)}
    # The mock responds differently from Kafka 4: only names and calls are checked here.
    block = block.replace("new-broker:9092", "mock").replace("assert report.passed, ", "")
    if "consume(" in block:
        exec(CONSUME, given)
    exec(compile(block, page, "exec"), given)
    capsys.readouterr()


@pytest.mark.long
@pytest.mark.parametrize(("page", "block"), TESTS)
def test_an_example_of_a_test_passes(page: str, block: str, folder: Path) -> None:
    file = folder / "test_example.py"
    file.write_text(CONSUME + block)
    plugins = ("-p", "serve.pytest_plugin", "-p", "record.recording_plugin")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, file],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-c /dev/null"},
    )
    assert "1 passed" in done.stdout, f"{page}: {done.stdout}{done.stderr}"


def test_python_examples_that_are_not_run_compile() -> None:
    for page, text in TEXTS.items():
        for block in re.findall(r"```python no-run\n(.*?)```", text, re.DOTALL):
            compile(block, page, "exec")
