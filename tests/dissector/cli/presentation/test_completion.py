"""Completion in shells, and examples in help."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from dissector.cli import main
from dissector.cli.presentation.completion import VARIABLE, complete_filter, typed_words
from dissector.cli.presentation.examples import EXAMPLES
from tests.dissector.cli.conftest import Run

DEMO = Path(__file__).parents[4] / "captures" / "demo.pcap"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kafkashark pai", {"pairs"}),
        ("kafkashark pairs --li", {"--limit", "--list-columns", "--list-fields"}),
        ("kafkashark pairs --columns api,lat", {"api,latency_ms"}),
        ("kafkashark pairs -e request.ack", {"request.acks", "request.ack_when_committed"}),
        ("kafkashark records --sort off", {"offset"}),
        ("kafkashark pairs -Y kafka.consumer_g", {"kafka.consumer_group"}),
        ("kafkashark records -Y header.N", {"header.NAME"}),
        ("kafkashark schema Prod", {"Produce"}),
        ("kafkashark streams -T par", {"parquet"}),
        ("kafkashark dissect --color al", {"always"}),
        ("kafkashark dissect -T f", {"fields"}),
        ("kafkashark stats --by minute,cl", {"minute,client"}),
        ("kafkashark upgrade --to 4.", {"4.0", "4.4"}),
        ("kafkashark groups --columns high", {"high_watermark"}),
        ("kafkashark timeline --kind gr", {"group"}),
        ("kafkashark conform --select F,B0", {"F,B01"}),
        ("kafkashark export --keep top", {"topic"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_words_are_completed(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    shell: str,
    line: str,
    offered: set[str],
) -> None:
    monkeypatch.setenv(VARIABLE, f"complete_{shell}")
    if shell == "bash":
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    else:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    if shell == "zsh":
        assert all(f'"{word}"' in shown for word in offered)
    else:
        assert offered <= {each.split("\t")[0] for each in shown.splitlines()}


@pytest.mark.parametrize(
    ("written", "offered"),
    [
        ("api == Prod", ["api == Produce"]),
        ("error and client_i", ["error and client_id"]),
        ("len(kafka.consumer_g", ["len(kafka.consumer_group"]),
    ],
)
def test_the_last_word_of_a_filter_is_completed(written: str, offered: list[str]) -> None:
    context = SimpleNamespace(info_name="pairs")
    found = complete_filter(context, written)
    assert found[:1] == offered


def test_a_command_is_recognised_once_its_name_is_complete() -> None:
    assert typed_words({"COMP_WORDS": "kafkashark pairs"}) == []
    assert typed_words({"COMP_WORDS": "kafkashark pairs -T"}) == ["pairs", "-T"]
    assert typed_words({"_TYPER_COMPLETE_ARGS": "kafkashark pairs "}) == ["pairs"]


@pytest.mark.parametrize("command", EXAMPLES)
def test_each_help_has_examples(good: Run, command: str) -> None:
    shown = good(command, "--help").out
    assert all(f"    kafkashark {each}\n" in shown for each in EXAMPLES[command])


@pytest.mark.parametrize(
    "example",
    [
        each
        for name in ("dissect", "pairs", "records", "streams", "stats", "groups", "schema")
        for each in EXAMPLES[name]
    ],
)
def test_examples_run(
    good: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DEMO, tmp_path / "a.pcap")
    done = good(*shlex.split(example))
    assert done.out or list(tmp_path.glob("*.parquet"))
