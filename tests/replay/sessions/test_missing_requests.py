"""A dry run of an incomplete capture announces the changes that a replay makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.run.dry_run import dry_run_lines
from replay.sessions.missing_producers import NO_BEGINNING
from tests.replay.sessions.test_missing_producers import midway

ID = "InitProducerId for producer 9"
ADDED = "AddPartitionsToTxn of t-0 for x"
ENDED = "EndTxn, a commit, for x"


@pytest.mark.parametrize(
    ("steps", "before"),
    [
        (("add", "write", "end"), [[ID], [], []]),
        (("write", "end"), [[ID, ADDED], []]),
        (("add", "write", "add", "write", "end"), [[ID], [], [ENDED], [], []]),
        (("write", "write"), [[ID, ADDED], []]),
    ],
)
def test_requests_a_dry_run_would_add(
    tmp_path: Path, steps: tuple[str, ...], before: list[list[str]]
) -> None:
    with Plan.of(midway(tmp_path, *steps)) as plan:
        lines = list(dry_run_lines(plan, TargetSettings("")))
    expected_before = [
        line.partition("; after ")[2].partition(", which the capture")[0] for line in lines
    ]
    assert expected_before[: len(steps)] == [", ".join(each) for each in before]
    assert lines[len(steps) + 1] == f"{len(steps)} requests would be sent, 0 left out"


def test_requests_a_dry_run_would_leave_out(tmp_path: Path) -> None:
    with Plan.of(midway(tmp_path, "end", "add", "write", "end")) as plan:
        lines = list(dry_run_lines(plan, TargetSettings("")))
    assert lines[0].endswith(f"left out: {NO_BEGINNING}")
    assert lines[5] == "3 requests would be sent, 1 left out"
    assert lines[6] == f"  1  {NO_BEGINNING}"
