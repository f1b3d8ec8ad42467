"""The report of a dry run."""

from __future__ import annotations

from pathlib import Path

from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.run.dry_run import dry_run_lines, target_lines

CAPTURES = Path(__file__).parents[3] / "captures"


def _lines(capture: str, setting: TargetSettings) -> list[str]:
    with Plan.of(CAPTURES / capture) as plan:
        return list(dry_run_lines(plan, setting))


def test_requests_have_destinations_and_changes() -> None:
    lines = _lines("demo.pcap", TargetSettings("", prefix="x-"))
    (produce, *_) = [line for line in lines if "Produce" in line]
    assert produce.endswith("-> leader of x-demo.orders-0; topic demo.orders -> x-demo.orders")
    (sync, *_) = [line for line in lines if "SyncGroup" in line]
    assert "-> coordinator of group x-billing; group billing -> x-billing" in sync
    assert sync.endswith("generation member from the target")
    (create,) = [line for line in lines if "CreateTopics" in line]
    assert "-> controller" in create
    assert "  3  x-demo.orders" in lines


def test_omitted_requests_have_reasons() -> None:
    lines = _lines("kafka4-librdkafka-admin.pcap", TargetSettings(""))
    (deleted, *_) = [line for line in lines if "DeleteTopics" in line]
    assert deleted.endswith("left out: destroys or reconfigures, and is not allowed")
    assert any(line.endswith("  destroys or reconfigures, and is not allowed") for line in lines)


def test_a_dry_run_ends_at_the_limits_of_the_replay() -> None:
    lines = _lines("demo.pcap", TargetSettings("", play_options=PlayOptions(limit=3)))
    assert lines.index("") == 3


def test_a_dry_run_shows_the_target_and_its_versions() -> None:
    with Plan.of(CAPTURES / "demo.pcap") as plan:
        lines = list(target_lines(plan, TargetSettings("mock")))
    assert lines[0] == "brokers of mock"
    assert lines[1].startswith("  1  127.0.0.1:")
    newest = [line for line in lines if line.startswith("  ApiVersions v4")]
    assert newest == ["  ApiVersions v4 -> v4"]
    others = [line for line in lines if " -> v" in line and "ApiVersions" not in line]
    assert any(line.split()[1] != line.split()[3] for line in others)
