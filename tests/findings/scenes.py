"""Captures of scenes, and what stands out in them."""

from __future__ import annotations

from pathlib import Path

from dissector.public import open_capture
from findings.gather.capture_pass import Scope
from findings.public import findings
from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import RankedFinding
from tests import tcp_captures
from tests.conform.scene import Scene, SceneConnection

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18


def written(scene: Scene, folder: Path) -> str:
    return str(tcp_captures.write(folder / "scene.pcap", scene.wire.packets))


def found(path: str | Path, filter: str | None = None) -> FindingReport:
    return findings(open_capture(path, filter=filter), scope=Scope(None, None))


def by_id(report: FindingReport) -> dict[str, RankedFinding]:
    return {each.id: each for one in report for each in (one, *one.joined)}


def ask_metadata(
    scene: Scene, connection: SceneConnection, number: int, *, error: int = 0, ms: int = 1
) -> None:
    """Send a Metadata request about one topic; its response comes after some milliseconds."""
    connection.request(METADATA, 9, number, topics=[{"name": "orders"}])
    scene.wait_ms(ms)
    topic = {"name": "orders", "error_code": error}
    connection.response(METADATA, 9, number, topics=[topic])


def shown(path: str | Path, finding: RankedFinding) -> int:
    """Return the number of exchanges that the filter of a finding selects."""
    return len(open_capture(path, filter=finding.filter).exchanges())
