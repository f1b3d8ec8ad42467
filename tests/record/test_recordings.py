"""Recordings of real traffic read like captures: complete, and as no rule forbids."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conform import conform
from dissector.public import open_capture
from tests.corpus import FOLDER
from timeline.public import timeline
from tools.record.recordings import SCENES

RECORDINGS = sorted((FOLDER / "recordings").iterdir())


def test_each_scene_is_recorded() -> None:
    assert [path.name for path in RECORDINGS] == sorted(f"{name}.pcapng.gz" for name in SCENES)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_recording_is_a_capture(path: Path) -> None:
    capture = open_capture(path)
    rows = [each.row() for each in capture]
    assert capture.exchanges().to_dicts() == rows
    assert len(rows) > 30
    assert {row["status"] for row in rows} <= {"answered", "no_response", "unanswered"}
    assert Counter(row["status"] for row in rows)["unanswered"] <= 2  # in flight at the end
    assert not any(row["problems"] for row in rows)
    counters = capture.stats()["capture"].to_dicts()[0]
    assert not any(counters[name] for name in ("gaps", "skipped_bytes", "problems", "cut_bytes"))
    # Clients were told other addresses, the recording has those of the brokers.
    known = {row["broker"] for row in rows}
    nodes = {
        f"{node.host}:{node.port}"
        for each in capture
        if each.api == "Metadata" and each.response is not None and each.response.body is not None
        for node in each.response.body.brokers
    }
    assert nodes == known
    verdict = conform(path)
    assert not verdict.faults
    assert not verdict.fails, str(verdict)
    assert {each.kind for each in timeline(path)} >= {"connection", "producer"}
