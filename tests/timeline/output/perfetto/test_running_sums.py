"""Running sums of late changes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.timeline.output.perfetto.read_trace import read_trace
from timeline.output.perfetto import running_sums
from timeline.output.perfetto.running_sums import RunningSums
from timeline.output.perfetto.tracks import Tracks


def test_changes_are_sorted_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[bytes] = []
    tracks = Tracks(pieces.append)
    names = [tracks.counter(0, name, "requests") for name in ("a", "b")]
    sums = RunningSums(pieces.append)
    sums.add(np.array(names * 2), np.array([30, 10, 10, 40]), np.array([-1, 5, 1, -5]))
    sums.write_before(20)
    sums.add(np.array(names[:1]), np.array([25]), np.array([1]))
    sums.write_before(30)
    monkeypatch.setattr(running_sums, "MAX_WAITING", 2)
    sums.add(np.array(names[:1]), np.array([50]), np.array([7]))
    sums.write_before(0)
    late = read_trace(b"".join(pieces)).counters
    assert late["a",] == [(10, 1), (25, 2), (30, 1)]
    sums.write_before(100)
    counters = read_trace(b"".join(pieces)).counters
    assert counters["a",] == [(10, 1), (25, 2), (30, 1), (50, 8)]
    assert counters["b",] == [(10, 5), (40, 0)]
