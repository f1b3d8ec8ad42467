"""Traffic recorded at one embedded cluster has the same effect on another, without Kafka."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from confluent_kafka.admin import AdminClient

from cluster.mock.embedded_broker import EmbeddedBroker
from replay import Pace, Plan, replay
from tests.broker.replay.support.found import Record, records
from tests.corpus import fast_and_long
from tests.waiting import PATIENCE_S
from tools.record.scenario import Mock, Scenario, Stage, all_scenarios
from tools.record.sniff import CaptureRefusedError, capture, wait_until_quiet

SCENARIOS = [each for each in all_scenarios() if isinstance(each.cluster, Mock)]

TopicRecords = dict[tuple[str, int], list[Record]]
"""Topic and partition -> its records."""


def recorded(scenario: Scenario, nodes: int, folder: Path) -> tuple[Path, TopicRecords]:
    """Record a scenario; return the capture and the records of its cluster."""
    path = folder / f"{scenario.name}.pcap"
    with EmbeddedBroker(nodes) as cluster:
        ports = tuple(int(each.rpartition(":")[2]) for each in cluster.addresses)
        bootstrap = ",".join(cluster.addresses)
        with capture(path, ports):
            scenario.play(Stage(scenario.name, bootstrap, ports, folder))
            gc.collect()  # unreferenced clients close their connections
            wait_until_quiet(ports)
        return path, stored_records(bootstrap)


def stored_records(bootstrap: str) -> TopicRecords:
    """Read all records of a cluster."""
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=PATIENCE_S).topics
    places = [
        TopicPartition(name, partition, OFFSET_BEGINNING)
        for name, topic in sorted(topics.items())
        for partition in sorted(topic.partitions)
    ]
    return records(bootstrap, places, "read_committed")


def difference(folder: Path, scenario: Scenario) -> str:
    """Record and replay a scenario; return the differences."""
    assert isinstance(scenario.cluster, Mock)
    nodes = scenario.cluster.nodes
    path, before = recorded(scenario, nodes, folder)
    with Plan.of(path) as plan, EmbeddedBroker(nodes, plan.topics) as target:
        report = replay(plan, ",".join(target.addresses), pace=Pace(0), timeout_s=PATIENCE_S)
        assert not plan.left_out
        assert not report.refusals
        after = stored_records(",".join(target.addresses))
    if not report.passed:
        return str(report)
    held = {place: found for place, found in before.items() if found}
    same = held == {place: found for place, found in after.items() if found}
    return "" if same else f"{scenario.name} left {before}, and {after} when it was played"


# Group members wait seconds for each other; captures in `make test` cover groups.
GROUPS = [each for each in SCENARIOS if "-group-" in each.name]
OTHERS = [each for each in SCENARIOS if each not in GROUPS]


# Clients of others, played in threads, may leave a connection to the garbage collector.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:unclosed (transport )?<:ResourceWarning")
@pytest.mark.parametrize(
    "scenarios",
    fast_and_long(
        [[each for each in SCENARIOS if each not in GROUPS]], [[each] for each in GROUPS]
    ),
    ids=["without groups", *(each.name for each in GROUPS)],
)
def test_replay_gives_the_same_records_at_another_cluster(
    scenarios: list[Scenario], tmp_path: Path
) -> None:
    """Concurrent: clients mostly wait. Groups are replayed alone, as their timing matters."""
    try:
        with ThreadPoolExecutor(len(scenarios)) as pool:
            differences = list(pool.map(partial(difference, tmp_path), scenarios))
    except CaptureRefusedError as refused:
        pytest.skip(str(refused))
    assert not any(differences), "\n".join(differences)
