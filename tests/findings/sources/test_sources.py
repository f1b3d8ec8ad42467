"""Each source finds its scene, with as many exchanges as its filter selects, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from findings.registry.ranked_finding import Rank
from findings.sources import SOURCES
from tests.advise.advised_programs import BAD
from tests.conform.scene import Scene
from tests.corpus import FOLDER
from tests.findings.scenes import (
    FETCH,
    METADATA,
    PRODUCE,
    ask_metadata,
    by_id,
    found,
    shown,
    written,
)

LEADER_NOT_AVAILABLE, INVALID_TOPIC = 5, 17


def test_an_error_that_is_fine_when_sent_again_costs_and_another_one_breaks(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect()
    for number, error in enumerate([LEADER_NOT_AVAILABLE, LEADER_NOT_AVAILABLE, 0, INVALID_TOPIC]):
        ask_metadata(scene, connection, number, error=error)
    path = written(scene, tmp_path)
    report = by_id(found(path))
    fine = report["error:Metadata:LEADER_NOT_AVAILABLE"]
    assert (fine.rank, fine.count, fine.detail) == (Rank.COSTS, 2, "fine when sent again")
    assert fine.subjects.topics == ("orders",)
    bad = report["error:Metadata:INVALID_TOPIC_EXCEPTION"]
    assert (bad.rank, bad.count, bad.detail) == (Rank.BREAKS, 1, "not fine later in the capture")
    assert [shown(path, each) for each in (fine, bad)] == [2, 1]


@pytest.mark.parametrize(("seconds", "rank"), [(40, Rank.BREAKS), (5, Rank.INFORMS)])
def test_a_request_without_a_response_breaks_once_it_hangs(
    tmp_path: Path, seconds: int, rank: Rank
) -> None:
    scene = Scene()
    hanging, other = scene.connect(), scene.connect()
    hanging.request(METADATA, 9, 1, topics=None)
    ask_metadata(scene, other, 1)
    scene.wait_ms(seconds * 1000)
    ask_metadata(scene, other, 2)
    path = written(scene, tmp_path)
    report = by_id(found(path))
    assert (report["unanswered:Metadata"].rank, report["unanswered:Metadata"].count) == (rank, 1)
    assert shown(path, report["unanswered:Metadata"]) == 1


def test_exchanges_are_slow_beside_others_of_their_api(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect()
    for number in range(20):
        ask_metadata(scene, connection, number, ms=250 if number in (3, 5) else 4)
    path = written(scene, tmp_path)
    slow = by_id(found(path))["slow:Metadata"]
    assert (slow.rank, slow.count, shown(path, slow)) == (Rank.COSTS, 2, 2)
    assert slow.title.endswith("took 100 ms or more, at most 252 ms")


def test_a_long_poll_is_slow_only_beyond_the_time_that_it_asked_for(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect()
    for number in range(30):
        connection.request(FETCH, 12, number, replica_id=-1, max_wait_ms=500, topics=[])
        scene.wait_ms(2_500 if number == 20 else 500 if number % 2 else 3)
        connection.response(FETCH, 12, number, responses=[])
    path = written(scene, tmp_path)
    slow = by_id(found(path)).get("slow:Fetch")
    assert slow is None
    for number in range(30, 60):
        connection.request(FETCH, 12, number, replica_id=-1, max_wait_ms=20, topics=[])
        scene.wait_ms(2_500 if number == 50 else 20 if number % 2 else 3)
        connection.response(FETCH, 12, number, responses=[])
    path = written(scene, tmp_path)
    slow = by_id(found(path))["slow:Fetch"]
    assert (slow.count, shown(path, slow)) == (1, 1)
    assert "request.max_wait_ms <= 50" in slow.filter


def test_unreadable_bytes_damage_and_violations(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect()
    for number in range(8):
        ask_metadata(scene, connection, number)
    connection.request(PRODUCE, 9, 20, acks=-1, topic_data=[])
    connection.response(METADATA, 9, 20, topics=[])
    for number in range(30, 38):
        ask_metadata(scene, connection, number)
    scene.lose(4)
    path = written(scene, tmp_path)
    report = by_id(found(path))
    assert report["damage:gaps in streams"].count == 1
    assert not report["damage:gaps in streams"].filter
    problems = [each for name, each in report.items() if name.startswith("problem:")]
    assert problems
    assert [shown(path, each) for each in problems] == [each.count for each in problems]


def test_events_violations_advice_and_upgrades(tmp_path: Path) -> None:
    demo = by_id(found(FOLDER / "demo.pcap"))
    rebalance = demo["event:group:rebalance:joined:billing"]
    assert (rebalance.rank, rebalance.count) == (Rank.COSTS, 2)
    assert "384 ms" in rebalance.title
    violation = demo["conformance:B18"]
    assert (violation.rank, violation.count) == (Rank.DIFFERS, 6)
    path = written(BAD["tiny-batches"](), tmp_path)
    tiny = by_id(found(path))["advice:tiny-batches"]
    assert (tiny.rank, tiny.count, shown(path, tiny)) == (Rank.COSTS, 600, 600)
    old = FOLDER / "kafka39-kafka-python-as-0.9.pcap"
    upgrade = by_id(found(old))["upgrade:breaks"]
    assert (upgrade.rank, shown(old, upgrade)) == (Rank.INFORMS, upgrade.count)


def test_every_source_has_a_scene_here() -> None:
    here = Path(__file__).read_text()
    assert SOURCES
    assert [name for name in SOURCES if f'"{name}:' not in here] == []
