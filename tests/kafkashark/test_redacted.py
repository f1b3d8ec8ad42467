"""Commands give the same results for a redacted capture as for the original."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dissector.cli import main
from replay import Plan, Report, replay
from tests.conform.mutations import judged_file
from tests.corpus import CAPTURES, fast_and_long
from timeline.public import timeline
from tools.record.manifest import keylogs

FAST = ("demo.pcap", "kafka4-librdkafka-transactions.pcap", "kafka39-static-members.pcap")
NAMED = ("client", "broker", "client_id", "topic")
PLAIN = [path for path in CAPTURES if not keylogs(path)]


def redacted(capture: Path, folder: Path) -> Path:
    out = folder / "out.pcapng"
    assert main(["export", str(capture), "--redact", "-o", str(out)]) == 0
    return out


def findings(capture: Path) -> Counter[tuple[str, int]]:
    """Return the number of violations of each rule, by text."""
    return Counter(
        (f"{each.rule.id} {each.severity} {each.side} {each.path} {each.span}", kind.count)
        for kind in judged_file(capture)
        for each in [kind.first]
    )


def events(capture: Path) -> Counter[tuple[object, ...]]:
    # A failed connection has no exchange, so exports omit it.
    found = [each for each in timeline(capture) if each.event != "connect failed"]
    return Counter(
        (each.time_ns, each.end_ns, each.kind, each.event, each.cause, each.certain)
        for each in found
    )


def statistics(capture: Path, capsys: pytest.CaptureFixture[str]) -> Counter[tuple[str, ...]]:
    """Return the rows of `stats` without names."""
    capsys.readouterr()
    assert main(["stats", str(capture), "-T", "ndjson"]) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    return Counter(
        tuple(f"{name} {value}" for name, value in row.items() if name not in NAMED)
        for row in rows
        # Exports omit connections without an exchange.
        if row["section"] != "capture"
    )


@pytest.mark.parametrize(
    "path",
    fast_and_long(
        [path for path in PLAIN if path.name in FAST],
        [path for path in PLAIN if path.name not in FAST],
    ),
    ids=lambda path: path.name,
)
def test_verdict_events_and_statistics_are_the_same(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = redacted(path, tmp_path)
    assert findings(out) == findings(path)
    assert events(out) == events(path)
    assert statistics(out, capsys) == statistics(path, capsys)


@pytest.mark.parametrize(
    "name",
    fast_and_long(
        ["librdkafka-idempotent.pcap"],
        ["kafka4-librdkafka-acks.pcap", "librdkafka-transactions.pcap", "demo.pcap"],
    ),
)
def test_replays_are_the_same(name: str, tmp_path: Path) -> None:
    path = next(each for each in PLAIN if each.name == name)
    with Plan.of(path) as plan, Plan.of(redacted(path, tmp_path)) as redacted_plan:
        report, found = replay(plan, "mock"), replay(redacted_plan, "mock")
    assert found.sent == report.sent
    assert found.passed == report.passed
    assert differences(found) == differences(report)


def differences(report: Report) -> dict[tuple[str, str], int]:
    return {(row["field"], str(row["errors"])): row["count"] for row in report.field_rows()}
