"""Captures of the corpus that begin midway or have gaps, replayed at the embedded broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay import Plan
from tests.replay.incomplete_captures import Damage, damaged, played
from tests.replay.support.replay_captures import SHIPPED

CAPTURES = (
    "librdkafka-idempotent",
    "librdkafka-transactions",
    "librdkafka-produce-shapes",
    "librdkafka-acks",
)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("damage", [Damage(cut=30), Damage(lost=3, seed=1), Damage(lost=3, seed=2)])
def test_damage_to_a_capture_causes_no_difference(
    name: str, damage: Damage, tmp_path: Path
) -> None:
    path = damaged(SHIPPED / f"{name}.pcap", damage, tmp_path)
    found = played(path, "mock")
    assert found.answers
    assert not found.differ, str(found.report)


def test_equal_seeds_give_equal_damage(tmp_path: Path) -> None:
    capture = SHIPPED / "librdkafka-acks.pcap"
    first, again = (
        damaged(capture, Damage(lost=10, seed=seed), tmp_path).read_bytes() for seed in (4, 4)
    )
    other = damaged(capture, Damage(lost=10, seed=5), tmp_path).read_bytes()
    assert first == again != other
    assert len(first) < capture.stat().st_size


def test_a_damaged_capture_is_partial_a_whole_one_is_not(tmp_path: Path) -> None:
    capture = SHIPPED / "librdkafka-transactions.pcap"
    with Plan.of(capture) as whole, Plan.of(damaged(capture, Damage(30), tmp_path)) as rest:
        assert (whole.is_partial, rest.is_partial) == (False, True)
