"""A target that lies about what the capture never reads again fails; an honest one passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.mock.embedded_broker import EmbeddedBroker
from replay import Plan, Report, replay
from tests.corpus import fast_and_long
from tests.replay.support.fault_proxy import Fault, proxied
from tests.replay.support.lies import LIES
from tests.replay.support.unread import IN_TRANSACTION, LOG, PARTITIONS, unread
from tests.waiting import PATIENCE_S

TIMEOUT_S = 2.0
FAST = (
    "a commit is dropped",
    "a commit in a transaction is one less",
    "the high watermark is beyond the log",
    "batches have another producer",
    "no replica is in sync",
)
MOCK_HAS_NO_EPOCH = "ListOffsets.topics[*].partitions[*].leader_epoch"


def played(folder: Path, fault: Fault, *, final_check: bool = True) -> Report:
    with (
        Plan.of(unread(folder)) as plan,
        EmbeddedBroker(1, {LOG: PARTITIONS, IN_TRANSACTION: 1}) as embedded,
        proxied(embedded.addresses, fault) as address,
    ):
        options = {"noise": [MOCK_HAS_NO_EPOCH], "final_check": final_check}
        timeout_s = PATIENCE_S if type(fault) is Fault else TIMEOUT_S
        return replay(plan, address, timeout_s=timeout_s, **options)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", fast_and_long(FAST, [each for each in LIES if each not in FAST]))
def test_each_lie_is_found(tmp_path: Path, name: str) -> None:
    report = played(tmp_path, LIES[name]())
    assert not report.ended
    assert not report.passed, str(report)


def test_an_honest_target_passes(tmp_path: Path) -> None:
    report = played(tmp_path, Fault())
    assert report.passed, str(report)
    assert not report.unbalanced_rows()


def test_without_the_end_check_nobody_asks_for_a_dropped_commit(tmp_path: Path) -> None:
    report = played(tmp_path, LIES["a commit is dropped"](), final_check=False)
    assert report.passed, str(report)


def test_a_lie_names_the_request_that_wrote_it(tmp_path: Path) -> None:
    report = played(tmp_path, LIES["a commit is one less"]())
    (row,) = report.differences()
    assert (row["api"], row["path"]) == (
        "OffsetCommit",
        f"topics[{LOG}].partitions[0].committed_offset",
    )
