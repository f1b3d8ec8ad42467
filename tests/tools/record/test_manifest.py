from __future__ import annotations

from pathlib import Path

import pytest

from tools.record import manifest
from tools.record.request_logs import SCENES
from tools.record.scenario import all_scenarios

CAPTURES = Path(__file__).parents[3] / "captures"


def test_a_written_manifest_is_read(tmp_path: Path) -> None:
    entry = manifest.Entry("a", "a.pcap", "shows", "client", "broker", "command", ("a.keylog",))
    assert manifest.read(tmp_path) == {}
    manifest.write(tmp_path, {"a": entry})
    assert manifest.read(tmp_path) == {"a": entry}


def test_every_capture_has_its_scenario_and_every_file_its_entry() -> None:
    entries = manifest.read(CAPTURES)
    assert set(entries) <= {each.name for each in all_scenarios()}
    files = {name for each in entries.values() for name in (each.file, *each.beside)}
    files |= {f"{name}.log.gz" for name in SCENES}
    pages = {".md", ".json"}
    there = {
        path.name for path in CAPTURES.iterdir() if path.suffix not in pages and path.is_file()
    }
    assert files == there


@pytest.mark.parametrize("limit_bytes", [300_000])
def test_captures_stay_small(limit_bytes: int) -> None:
    sizes = {path.name: path.stat().st_size for path in CAPTURES.iterdir()}
    assert {name for name, size in sizes.items() if size > limit_bytes} == set()
    assert sum(sizes.values()) < 8_200_000  # TLS does not compress
