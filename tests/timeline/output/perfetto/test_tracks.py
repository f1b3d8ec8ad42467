"""Limits of tracks."""

from __future__ import annotations

import pytest

from timeline.output.perfetto import tracks
from timeline.output.perfetto.tracks import Tracks


def test_many_clients_share_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracks, "MAX_PROCESSES", 4)
    found = Tracks(lambda packet: None)
    processes = [found.process("client", str(number)) for number in range(8)]
    assert len(set(processes)) == 5
    assert found.name(processes[-1]) == "other clients"
    assert found.process("broker", "b") not in processes
    assert found.name(found.process("broker", "b")) == "other brokers"


def test_number_of_subjects_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracks, "MAX_CHILDREN", 1)
    found = Tracks(lambda packet: None)
    found.child(0, "a")
    assert found.has_room(0, "a")
    assert not found.has_room(0, "b")
