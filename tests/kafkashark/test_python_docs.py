"""The examples of docs/python.md run."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copy

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NOT_RUN = re.findall(r"```python no-run\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_runs(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    copy(ROOT / "captures/kafka4-librdkafka-acks.pcap", tmp_path / "a.pcap")
    exec(block, {})
    capsys.readouterr()


def test_an_example_with_live_capture_compiles() -> None:
    assert len(NOT_RUN) == 1
    compile(NOT_RUN[0], "docs/python.md", "exec")


def test_the_page_has_all_methods_of_a_capture() -> None:
    from kafkashark import Capture

    for name in re.findall(r"`(\w+)\([^`]*\)`", PAGE[: PAGE.index("## Packets")]):
        assert hasattr(Capture, name) or name in ("close",), name
