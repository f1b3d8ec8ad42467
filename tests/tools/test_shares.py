"""Each test is in one share, and a week's commits run all of them."""

from __future__ import annotations

import os
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest

from tools.shares import PARTS, Share, of_commit, of_day

NAMES = [f"tests/room/test_file_{number // 10}.py::test_{number}[é]" for number in range(700)]


def test_seven_days_in_a_row_run_each_test_once() -> None:
    week = [of_day(date(2026, 12, 29) + timedelta(days)) for days in range(PARTS)]
    ran = [name for share in week for name in NAMES if share.has(name)]
    assert sorted(ran) == sorted(NAMES)


def test_shares_are_of_like_size() -> None:
    sizes = [sum(map(Share(number, PARTS).has, NAMES)) for number in range(1, PARTS + 1)]
    assert min(sizes) > 700 / PARTS * 0.7


def test_a_name_is_in_the_same_share_on_each_machine() -> None:
    assert [number for number in range(1, 8) if Share(number, 7).has("tests/test_a.py::b")] == [4]


@pytest.mark.parametrize("text", ["1/1", "3/7", "10/12"])
def test_a_share_is_written_as_it_is_read(text: str) -> None:
    assert str(Share.parsed(text)) == text


@pytest.mark.parametrize("text", ["", "0/7", "8/7", "3", "3/0", "-1/7", "3/7/9", "a/b"])
def test_other_texts_are_no_share(text: str) -> None:
    with pytest.raises(ValueError, match="write 3/7"):
        Share.parsed(text)


def test_the_date_in_a_commit_chooses_not_the_clock(tmp_path: Path) -> None:
    day = "2026-11-25T23:59:59+00:00"
    dates = {"GIT_COMMITTER_DATE": day, "GIT_AUTHOR_DATE": "2020-01-01T00:00:00+00:00"}
    people = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run(
            ["git", *words],
            cwd=tmp_path,
            check=True,
            env={**os.environ, **dates, **dict.fromkeys(people, "a")},
        )
    assert of_commit(tmp_path) == of_day(date(2026, 11, 25))


def test_outside_of_a_checkout_it_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert of_commit(tmp_path) == Share(1, PARTS)
    monkeypatch.setenv("PATH", "")
    assert of_commit(tmp_path) == Share(1, PARTS)
