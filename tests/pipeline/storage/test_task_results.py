"""A task with stored results does not run again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dissector.errors import PipelineError
from pipeline.storage.task_results import kept


def _doubled(inputs: Iterable[int]) -> Iterator[int]:
    return (2 * each for each in inputs)


def _failing(inputs: Iterable[int]) -> Iterator[int]:
    yield from inputs
    raise RuntimeError


def test_results_are_those_of_the_first_complete_run(tmp_path: Path) -> None:
    work = str(tmp_path / "_work")
    with pytest.raises(RuntimeError):
        list(kept(work, "range-1", [1], _failing))
    assert list(kept(work, "range-1", [2, 3], _doubled)) == [4, 6]
    inputs = iter([5, 7])
    assert list(kept(work, "range-1", inputs, _failing)) == [4, 6]
    assert list(inputs) == []  # Spark's worker is reused only if all inputs were read
    assert list(kept(work, "range-2", [5], _doubled)) == [10]
    stored = sorted(tmp_path.rglob("*.*"))
    assert [each.name for each in stored] == ["range-1.pickle", "range-2.pickle"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in stored} == {0o600}


def test_results_of_another_user_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who can write them would run code as this user."""
    assert list(kept(str(tmp_path), "range-1", [1], _doubled)) == [2]
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PipelineError, match=r"results/range-1\.pickle belongs to another user"):
        list(kept(str(tmp_path), "range-1", [1], _doubled))
