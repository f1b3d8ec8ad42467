"""Captures are read into recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import CaptureError, UsageError
from dissector.protocol.apis import KEYS
from serve.recording.recording_reader import read_recording
from tests.replay.support.replay_captures import SHIPPED, saved
from tests.tcp_captures import Wire


def test_a_recording_has_the_cluster() -> None:
    recording = read_recording(SHIPPED / "kafka4-three-nodes.pcap")
    assert sorted(recording.cluster.brokers) == [1, 2, 3]
    assert recording.cluster.cluster_id
    assert recording.cluster.offered()
    assert recording.transactional_ids
    recording.close()


def test_a_recording_has_the_logs() -> None:
    recording = read_recording(SHIPPED / "kafka4-librdkafka-group.pcap")
    ends = {part: recording.logs.at(topic, part).end for topic, part in recording.logs}
    assert sum(ends.values()) == 12
    assert not recording.problems
    recording.close()


def test_errors_of_producers_have_positions() -> None:
    recording = read_recording(SHIPPED / "kafka4-aiokafka-copies.pcap")
    errors = [error for each in recording.produce_errors.values() for error in each]
    assert errors
    assert all(error.result.error_code for error in errors)
    recording.close()


def test_an_admin_may_write_markers() -> None:
    recording = read_recording(SHIPPED / "kafka4-java-admin.pcap")
    assert KEYS["WriteTxnMarkers"] in recording.by_api
    recording.close()


def test_a_capture_without_exchanges_is_an_error(tmp_path: Path) -> None:
    wire = Wire()
    wire.connect().syn()
    with pytest.raises(UsageError, match="nothing to serve"):
        read_recording(saved(tmp_path, wire))
    text = tmp_path / "text.pcap"
    text.write_text("no capture")
    with pytest.raises(CaptureError):
        read_recording(text)
