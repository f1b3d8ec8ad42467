"""A target that loses, duplicates or changes records fails; one without faults passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from construct import Container

from cluster.client.broker_connection import CLIENT_ID
from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from replay import Plan, Report, replay
from replay.model.outcome import Verdict
from replay.report.report_words import verdict_line
from tests.corpus import fast_and_long
from tests.replay.support import target_faults
from tests.replay.support.fault_proxy import Fault, proxied
from tests.replay.support.replay_captures import saved
from tests.tcp_captures import Wire
from tests.waiting import PATIENCE_S

TIMEOUT_S = 1.0
"""For responses that a fault withholds."""

FAST = (
    "a batch is left out",
    "the last batch is kept from readers",
    "a batch is given twice",
    "a value is null",
    "a write times out once, though it was done",
    "an error is flipped",
    "a committed offset is the next",
    "answers to writes are swapped",
)


def patience_s(fault: Fault) -> float:
    """Return the timeout: an honest target responds, however slow the machine is."""
    return PATIENCE_S if type(fault) is Fault else TIMEOUT_S


def played(folder: Path, fault: Fault) -> Report:
    """Replay the capture through a proxy at the embedded broker, with one batch per response."""
    topics = {target_faults.READ: 1, target_faults.UNREAD: 1}
    with (
        Plan.of(target_faults.capture(folder, polls=target_faults.WRITES, aborted=[])) as plan,
        EmbeddedBroker(1, topics) as embedded,
        proxied(embedded.addresses, fault) as address,
    ):
        return replay(plan, address, timeout_s=patience_s(fault))


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "name", fast_and_long(FAST, [each for each in target_faults.FAULTS if each not in FAST])
)
def test_each_fault_is_found(tmp_path: Path, name: str) -> None:
    report = played(tmp_path, target_faults.FAULTS[name]())
    assert not report.ended
    assert not report.passed, str(report)
    assert report.difference_count
    assert sum(report.verdicts.values()) == len(report.plan)


@dataclass
class WithoutAuthorization(Fault):
    """Refuses the balance's own requests with TOPIC_AUTHORIZATION_FAILED."""

    api: str
    array: str
    fault: Fault = field(default_factory=Fault)

    def change_response(self, request: Message, body: Container) -> None:
        self.fault.change_response(request, body)
        if request.client_id == CLIENT_ID and request.api == self.api:
            for topic in body.get("responses") or body.get("topics") or ():
                for each in topic[self.array]:
                    each.error_code = error_code("TOPIC_AUTHORIZATION_FAILED")


def test_a_log_without_an_end_offset_is_unbalanced(tmp_path: Path) -> None:
    report = played(tmp_path, WithoutAuthorization("ListOffsets", "partitions"))
    (row,) = report.unbalanced_rows()
    assert row == {
        "count": 2,
        "logs": [f"{target_faults.UNREAD}-0", f"{target_faults.READ}-0"],
        "reason": "ListOffsets: TOPIC_AUTHORIZATION_FAILED",
    }
    assert report.passed
    assert "2 logs could not be balanced" in verdict_line(report)


def test_withheld_records_leave_the_log_unbalanced(tmp_path: Path) -> None:
    report = played(
        tmp_path, WithoutAuthorization("Fetch", "partitions", target_faults.WithheldLastBatch())
    )
    (row,) = report.unbalanced_rows()
    assert row["logs"] == [f"{target_faults.READ}-0"]
    assert "Fetch: TOPIC_AUTHORIZATION_FAILED" in row["reason"]


@pytest.mark.parametrize("name", ["", "a committed offset is the next"])
def test_a_committed_offset_is_compared_without_known_records(tmp_path: Path, name: str) -> None:
    wire, fault = Wire(), target_faults.FAULTS[name]() if name else Fault()
    target_faults.commit(wire)
    with (
        Plan.of(saved(tmp_path, wire)) as plan,
        EmbeddedBroker(1, {target_faults.READ: 1}) as embedded,
        proxied(embedded.addresses, fault) as address,
    ):
        report = replay(plan, address, timeout_s=patience_s(fault))
    assert report.passed is (type(fault) is Fault), str(report)


def test_a_target_without_faults_passes(tmp_path: Path) -> None:
    report = played(tmp_path, Fault())
    assert report.passed, str(report)
    assert report.verdicts[Verdict.SAME] == len(report.plan), str(report)
