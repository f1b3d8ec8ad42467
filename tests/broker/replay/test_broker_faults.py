"""With a real broker: each fault added by a proxy is found, and a proxy without faults passes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from replay import Plan, Report, replay
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape
from tests.replay.support import target_faults
from tests.replay.support.fault_proxy import Fault, proxied

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

CAPTURES = Path(__file__).parents[3] / "captures"
TIMEOUT_S = 5.0
PATIENCE_S = 90.0
_prefixes = (f"faults-{at}-" for at in count())


def played(
    capture: str | Path,
    kafka: StartCluster,
    fault: Fault,
    prefix: str = "",
    noise: tuple[str, ...] = (),
) -> Report:
    """
    Replay a capture through a proxy, with its own prefix.

    The timeout is short with a fault, as withheld responses never come, and long without.
    """
    with (
        Plan.of(capture) as plan,
        proxied(kafka(Shape("4.x")).bootstrap().split(","), fault) as address,
    ):
        name, timeout_s = (
            prefix or next(_prefixes),
            PATIENCE_S if type(fault) is Fault else TIMEOUT_S,
        )
        return replay(
            plan, address, timeout_s=timeout_s, prefix=name, create_topics=True, noise=noise
        )


@pytest.mark.parametrize("fault", target_faults.FAULTS.values(), ids=target_faults.FAULTS)
def test_each_fault_is_found(
    kafka: StartCluster, tmp_path: Path, fault: Callable[[], Fault]
) -> None:
    report = played(target_faults.capture(tmp_path), kafka, fault())
    assert not report.ended
    assert not report.passed, str(report)


def test_a_batch_returned_after_the_last_poll_is_missing(
    kafka: StartCluster, tmp_path: Path
) -> None:
    report = played(
        target_faults.capture(tmp_path), kafka, target_faults.WithheldLastBatch(target_faults.POLLS)
    )
    assert not report.passed, str(report)


def test_a_broker_without_faults_passes(kafka: StartCluster, tmp_path: Path) -> None:
    report = played(target_faults.capture(tmp_path), kafka, Fault())
    assert report.passed, str(report)


def test_log_append_time_of_a_topic_is_a_difference(kafka: StartCluster, tmp_path: Path) -> None:
    prefix = next(_prefixes)
    admin = AdminClient({"bootstrap.servers": kafka(Shape("4.x")).bootstrap()})
    config = {"message.timestamp.type": "LogAppendTime"}
    topics = [
        NewTopic(prefix + name, 1, 1, config=config)
        for name in (target_faults.READ, target_faults.UNREAD)
    ]
    for made in admin.create_topics(topics).values():
        made.result(PATIENCE_S)
    report = played(target_faults.capture(tmp_path), kafka, Fault(), prefix)
    assert {place.rpartition(".")[2] for place in report.fields} == {
        "log_append_time_ms",
        "timestamp_type",
    }


@pytest.mark.parametrize("wrong_aborted", [False, True])
def test_aborted_transactions(kafka: StartCluster, wrong_aborted: bool) -> None:
    fault = target_faults.ChangedField(
        "Fetch", "partitions", lambda each: each.update(aborted_transactions=[])
    )
    report = played(
        CAPTURES / "kafka4-librdkafka-transactions.pcap",
        kafka,
        fault if wrong_aborted else Fault(),
        noise=("ApiVersions",),  # recorded on an older release
    )
    assert report.passed is not wrong_aborted, str(report)
