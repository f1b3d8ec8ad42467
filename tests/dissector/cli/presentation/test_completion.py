"""Completion of filters, and examples in help."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from dissector.cli.presentation.completion import complete_filter
from dissector.cli.presentation.examples import EXAMPLES
from tests.dissector.cli.conftest import Run

DEMO = Path(__file__).parents[4] / "captures" / "demo.pcap"


@pytest.mark.parametrize(
    ("written", "offered"),
    [
        ("api == Prod", ["api == Produce"]),
        ("error and client_i", ["error and client_id"]),
        ("len(kafka.consumer_g", ["len(kafka.consumer_group"]),
    ],
)
def test_the_last_word_of_a_filter_is_completed(written: str, offered: list[str]) -> None:
    found = complete_filter("pairs", written)
    assert found[:1] == offered


@pytest.mark.parametrize("command", EXAMPLES)
def test_each_help_has_examples(good: Run, command: str) -> None:
    shown = good(command, "--help").out
    assert all(f"  kafkashark {each}\n" in shown for each in EXAMPLES[command])


@pytest.mark.thinned(3)
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
