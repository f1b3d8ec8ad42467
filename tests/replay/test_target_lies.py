"""A target that loses, doubles or changes what it was given is found out; an honest one is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from construct import Container

from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from replay import Plan, Report, replay
from replay.client.broker_connection import CLIENT_ID
from replay.mock.embedded_broker import EmbeddedBroker
from replay.model.outcome import Verdict
from replay.report.headline import verdict_line
from tests.replay.support import target_lies
from tests.replay.support.liar import Lie, lying
from tests.replay.support.replay_captures import saved
from tests.tcp_captures import Wire

TIMEOUT_S = 1.0


def played(folder: Path, lie: Lie) -> Report:
    """Play the capture at the embedded broker, which gives one batch at a time, behind a proxy."""
    topics = {target_lies.READ: 1, target_lies.UNREAD: 1}
    with (
        Plan.of(target_lies.capture(folder, polls=target_lies.WRITES, aborted=[])) as plan,
        EmbeddedBroker(1, topics) as embedded,
        lying(embedded.addresses, lie) as address,
    ):
        return replay(plan, address, timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("lie", target_lies.LIES.values(), ids=target_lies.LIES)
def test_a_lie_is_found(tmp_path: Path, lie: Callable[[], Lie]) -> None:
    report = played(tmp_path, lie())
    assert not report.ended
    assert not report.passed, str(report)
    assert report.difference_count
    assert sum(report.verdicts.values()) == len(report.plan)


@dataclass
class Silent(Lie):
    """Answers nothing of use to the requests of the replay itself."""

    api: str
    array: str
    lie: Lie = field(default_factory=Lie)

    def change_answer(self, request: Message, body: Container) -> None:
        self.lie.change_answer(request, body)
        if request.client_id == CLIENT_ID and request.api == self.api:
            for topic in body.get("responses") or body.get("topics") or ():
                for each in topic[self.array]:
                    each.error_code = error_code("TOPIC_AUTHORIZATION_FAILED")


def test_a_log_without_an_end_offset_is_left_open(tmp_path: Path) -> None:
    report = played(tmp_path, Silent("ListOffsets", "partitions"))
    (row,) = report.unbalanced_rows()
    assert row == {
        "count": 2,
        "logs": [f"{target_lies.UNREAD}-0", f"{target_lies.READ}-0"],
        "reason": "ListOffsets: TOPIC_AUTHORIZATION_FAILED",
    }
    assert report.passed
    assert "2 logs could not be balanced" in verdict_line(report)


def test_records_that_the_target_withholds_leave_the_log_unbalanced(tmp_path: Path) -> None:
    report = played(tmp_path, Silent("Fetch", "partitions", target_lies.OfLastBatch()))
    (row,) = report.unbalanced_rows()
    assert row["logs"] == [f"{target_lies.READ}-0"]
    assert "Fetch: TOPIC_AUTHORIZATION_FAILED" in row["reason"]


@pytest.mark.parametrize("lie", ["", "a committed offset is the next"])
def test_a_committed_offset_is_compared_though_no_record_is_known(tmp_path: Path, lie: str) -> None:
    wire = Wire()
    target_lies.commit(wire)
    with (
        Plan.of(saved(tmp_path, wire)) as plan,
        EmbeddedBroker(1, {target_lies.READ: 1}) as embedded,
        lying(embedded.addresses, target_lies.LIES[lie]() if lie else Lie()) as address,
    ):
        report = replay(plan, address, timeout_s=TIMEOUT_S)
    assert report.passed is not bool(lie), str(report)


def test_the_truth_is_no_lie(tmp_path: Path) -> None:
    report = played(tmp_path, Lie())
    assert report.passed, str(report)
    assert report.verdicts[Verdict.SAME] == len(report.plan), str(report)
