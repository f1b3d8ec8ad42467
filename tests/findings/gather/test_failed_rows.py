"""Errors and their repetitions, also over windows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dissector.public import open_capture
from findings.public import findings
from tests.conform.scene import Scene
from tests.findings.scenes import ask_metadata, by_id, written


@pytest.mark.parametrize("window_bytes", [400, 1 << 20])
def test_repetitions_are_found_in_later_windows(tmp_path: Path, window_bytes: int) -> None:
    scene = Scene()
    connection = scene.connect()
    for number in range(40):
        ask_metadata(scene, connection, number, error=5 if number in (3, 9, 39) else 0)
    capture = open_capture(written(scene, tmp_path))
    capture.options = replace(capture.options, window_bytes=window_bytes)
    finding = by_id(findings(capture))["error:Metadata:LEADER_NOT_AVAILABLE"]
    assert (finding.count, finding.detail) == (3, "2 of them fine when sent again")
