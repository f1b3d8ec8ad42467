"""Fetch exchanges read in columns give the plan that the codecs give."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dissector.errors import CaptureError
from replay.plan.plain_fetches import FetchReader
from replay.plan.plan import Plan
from tests.replay.support.replay_captures import SHIPPED

CAPTURES = [
    "demo.pcap",
    "kafka39-franz-go.pcap",
    "kafka39-sweep-data.pcap",
    "kafka4-errors.pcap",
    "kafka4-leader-change.pcap",
    "kafka4-librdkafka-transactions.pcap",
    "kafka44-franz-go.pcap",
]
DAMAGED = SHIPPED / "kafka44-franz-go.pcap"


def contents(path: Path) -> dict[str, Any]:
    with Plan.of(path) as plan:
        return {
            "steps": [(each.captured, each.after, each.left_out, each.overlaps) for each in plan],
            "topics": plan.topics,
            "completeness": plan.connections,
            "groups": plan.group_topics,
        }


def by_codecs(path: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FetchReader, "read", lambda *_: {})
        return contents(path)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CAPTURES)
def test_the_plan_is_that_of_the_codecs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read, found = SHIPPED / name, FetchReader.read, []

    def counted(*arguments: Any) -> Any:
        plain = read(*arguments)
        found.extend(plain.values())
        return plain

    expected = by_codecs(path)
    monkeypatch.setattr(FetchReader, "read", counted)
    assert contents(path) == expected
    assert found
    assert any(each.ended_producers for each in found) == ("transactions" in name)


@pytest.mark.long
def test_damaged_bytes_are_left_to_the_codecs(tmp_path: Path) -> None:
    whole, order = DAMAGED.read_bytes(), random.Random(4)
    path = tmp_path / "damaged.pcap"
    for _ in range(10):
        data = bytearray(whole)
        for _ in range(40):
            data[order.randrange(len(data) // 2, len(data))] = order.choice(
                (0, 1, 0x7F, 0x80, 0xFF)
            )
        path.write_bytes(data)
        try:
            expected = by_codecs(path)
        except CaptureError:
            continue
        assert contents(path) == expected
