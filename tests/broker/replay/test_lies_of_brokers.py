"""Before a real broker: each lie of a proxy is found out, and none where it does not lie."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from replay import Plan, Report, replay
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape
from tests.replay.support import target_lies
from tests.replay.support.liar import Lie, lying

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

CAPTURES = Path(__file__).parents[3] / "captures"
TIMEOUT_S = 5.0
PATIENCE_S = 90.0
_prefixes = (f"lies-{at}-" for at in count())


def played(
    capture: str | Path,
    kafka: StartCluster,
    lie: Lie,
    prefix: str = "",
    noise: tuple[str, ...] = (),
) -> Report:
    """
    Play a capture behind a proxy, under names of its own.

    What a liar holds back is waited for in vain; an honest target has all the time that it needs.
    """
    with (
        Plan.of(capture) as plan,
        lying(kafka(Shape("4.x")).bootstrap().split(","), lie) as address,
    ):
        name, timeout_s = prefix or next(_prefixes), PATIENCE_S if type(lie) is Lie else TIMEOUT_S
        return replay(
            plan, address, timeout_s=timeout_s, prefix=name, create_topics=True, noise=noise
        )


@pytest.mark.parametrize("lie", target_lies.LIES.values(), ids=target_lies.LIES)
def test_a_lie_is_found(kafka: StartCluster, tmp_path: Path, lie: Callable[[], Lie]) -> None:
    report = played(target_lies.capture(tmp_path), kafka, lie())
    assert not report.ended
    assert not report.passed, str(report)


def test_a_batch_that_is_given_when_the_reader_is_gone_is_missed(
    kafka: StartCluster, tmp_path: Path
) -> None:
    report = played(
        target_lies.capture(tmp_path), kafka, target_lies.OfLastBatch(target_lies.POLLS)
    )
    assert not report.passed, str(report)


def test_the_truth_is_no_lie(kafka: StartCluster, tmp_path: Path) -> None:
    report = played(target_lies.capture(tmp_path), kafka, Lie())
    assert report.passed, str(report)


def test_a_topic_whose_broker_sets_the_time_is_found(kafka: StartCluster, tmp_path: Path) -> None:
    prefix = next(_prefixes)
    admin = AdminClient({"bootstrap.servers": kafka(Shape("4.x")).bootstrap()})
    config = {"message.timestamp.type": "LogAppendTime"}
    topics = [
        NewTopic(prefix + name, 1, 1, config=config)
        for name in (target_lies.READ, target_lies.UNREAD)
    ]
    for made in admin.create_topics(topics).values():
        made.result(PATIENCE_S)
    report = played(target_lies.capture(tmp_path), kafka, Lie(), prefix)
    assert {place.rpartition(".")[2] for place in report.fields} == {
        "log_append_time_ms",
        "timestamp_type",
    }


@pytest.mark.parametrize("lies_about_aborted", [False, True])
def test_aborted_transactions(kafka: StartCluster, lies_about_aborted: bool) -> None:
    lie = target_lies.OfField(
        "Fetch", "partitions", lambda each: each.update(aborted_transactions=[])
    )
    report = played(
        CAPTURES / "kafka4-librdkafka-transactions.pcap",
        kafka,
        lie if lies_about_aborted else Lie(),
        noise=("ApiVersions",),  # recorded on an older release
    )
    assert report.passed is not lies_about_aborted, str(report)
