"""Metadata of a replay: capture, target, options."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.protocol.apis import KEYS
from replay.model.plan_source import Source
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.report.provenance import Provenance, release_of
from tests.default_frames import request, response
from tests.replay.support.replay_captures import exchange, saved
from tests.tcp_captures import Wire


@pytest.mark.parametrize(
    ("level", "release"),
    [(0, ""), (1, "3.0 to 3.2"), (7, "3.3"), (21, "3.9"), (25, "4.0"), (30, "4.3"), (99, "4.4 or")],
)
def test_releases_by_metadata_version(level: int, release: str) -> None:
    assert release in release_of({"metadata.version": level})
    assert bool(release_of({"metadata.version": level})) is bool(release)
    assert release_of({}) == ""


def test_sizes_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"12345")
    source = Source.of(["-", tmp_path / "a.pcap"], "api == Fetch", {"DeleteTopics"}, [9092])
    assert source.files == (("-", None), (str(tmp_path / "a.pcap"), 5))
    chosen = {"filter": "api == Fetch", "allow": ["DeleteTopics"], "port": [9092]}
    assert source.options == chosen


def test_clients_are_known_though_a_filter_omits_api_versions(tmp_path: Path) -> None:
    wire = Wire()
    key, beat = KEYS["ApiVersions"], KEYS["Heartbeat"]
    for port, name in enumerate(("shark", "shark", "s" * 500), 50000):
        connection = wire.connect(port).syn()
        about = {"client_software_name": name, "client_software_version": "1.2"}
        exchange(connection, request(key, 3, 1, **about), response(key, 3, 1, api_keys=[]))
        heartbeat = request(beat, 3, 2, group_id="g", member_id="m")
        exchange(connection, heartbeat, response(beat, 3, 2))
    with Plan.of(saved(tmp_path, wire), filter="api == Heartbeat") as plan:
        row = Provenance.of(plan, TargetSettings("mock", prefix="x-")).row()
    assert row["clients"] == [
        {"software": "shark 1.2", "connections": 2},
        {"software": "s" * 100, "connections": 1},
    ]
    assert row["options"]["prefix"] == "x-"
    assert row["first_request"] <= row["last_request"]
