"""The parts of the server, without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.bounded_answer import MAX_BYTES, MAX_DEPTH, MAX_ITEMS, answer_of, shortened
from assistant.capture_folder import CaptureFolder
from assistant.command_rows import CommandFailed, command_rows, command_text
from dissector.cli import main
from dissector.errors import UsageError

CAPTURES = Path(__file__).parents[2] / "captures"


def test_an_answer_is_never_longer_than_its_limit() -> None:
    for row in ({"a": "\U0001f600" * 400}, {"k" * 399: ["é" * 400] * 40}, "x", {"a": [[[1]]]}):
        text = answer_of([row] * 10_000, 5_000)
        assert len(text.encode()) <= MAX_BYTES
        content = json.loads(text)
        assert "more_rows" in content
        assert all(each == shortened(row) for each in content["rows"])
    assert json.loads(answer_of([1, 2], 2)) == json.loads(answer_of([1, 2], 2000))
    assert json.loads(answer_of([1, 2, 3], 2))["rows"] == [1, 2]


def test_deep_and_wide_values_are_cut() -> None:
    deep: object = 1
    for _ in range(500):
        deep = [deep]
    assert json.dumps(shortened(deep)).count("[") == MAX_DEPTH
    wide = shortened({str(number): number for number in range(1_000)})
    assert len(wide) == MAX_ITEMS + 1
    assert wide["..."] == 1_000 - MAX_ITEMS
    assert shortened(list(range(1_000)))[-1] == f"... {1_000 - MAX_ITEMS:,} more"


def test_a_folder_must_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mcp")
    assert main(["mcp", str(tmp_path / "missing")]) == 2
    assert "missing: no such folder" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no such folder"):
        CaptureFolder(str(CAPTURES / "demo.pcap"))


def test_paths_stay_below_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "x").write_text("")
    (tmp_path / "y").write_text("")
    (root / "link").symlink_to(tmp_path / "y")
    (root / "inner").symlink_to(root / "a")
    (root / "loop").symlink_to(root / "loop")
    folder = CaptureFolder(str(root))
    assert folder.paths(["a/x", "inner/x", "a/../a/x"]) == ["./a/x"] * 3
    for name in (
        "",
        "a",
        "../y",
        "link",
        str(tmp_path / "y"),
        "a\0",
        "x" * 5_000,
        "~",
        "loop",
        "missing",
    ):
        with pytest.raises(UsageError, match="is no file of the folder"):
            folder.paths([name])
    assert [each["path"] for each in folder.files()] == ["a/x"]


def test_a_command_ends_with_its_reader() -> None:
    """Its rows beyond the last one that is read are never made."""
    rows = command_rows(["pairs", "demo.pcap", "-T", "ndjson"], CAPTURES)
    assert next(rows)["connection"] == 0
    rows.close()  # type: ignore[attr-defined]
    with pytest.raises(CommandFailed, match="not a capture"):
        command_text(["pairs", "README.md"], CAPTURES, 1_000)
    assert len(command_text(["pairs", "demo.pcap"], CAPTURES, 1_000)) == 1_000
