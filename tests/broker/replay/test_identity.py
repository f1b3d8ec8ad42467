"""What was recorded on one fresh cluster does the same to another of the same version."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest

from replay import Plan, replay
from tests.broker.replay.cases import CASES, JUST_SET, LINES
from tests.broker.replay.lines import Case, Outcomes, Played, create, play_all, play_alone
from tests.broker.replay.support.connects import connects
from tests.broker.replay.support.found import found
from tests.broker.replay.support.recording import fresh, record
from tests.broker.server_properties import Shape

pytestmark = [
    pytest.mark.broker,
    pytest.mark.xdist_group("broker"),
    pytest.mark.timeout(3600),  # the first test waits for all lines
    # Clients of others, played in threads, may leave a connection to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed (transport )?<:ResourceWarning"),
    # What librdkafka's admin client advises against is asked all the same.
    pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning"),
]

FOR_THE_MOMENT = r"was refused temporarily \(\w+\), and retried"


@pytest.fixture(scope="module")
def played() -> Outcomes:
    outcomes = play_all(LINES)
    gc.collect()  # what clients have left, here and in no other test
    return outcomes


@pytest.mark.parametrize("name", CASES)
def test_the_same_broker_does_the_same(
    played: Outcomes, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Record and replay; scenarios that differ are repeated alone.

    On a busy machine a member's session may end that should not, in the capture or in the replay.
    """
    shape, case = CASES[name]
    try:
        _check(case, played[name])
    except Exception as error:
        with capsys.disabled():
            print(f"\n{name} is played again, alone, as it differed: {error}")
        _check(case, play_alone(shape, case))


def _check(case: Case, what: Played | BaseException) -> None:
    """Hold what became of a case against what should."""
    if isinstance(what, FileNotFoundError):  # a client of another language that can't be had
        pytest.skip(str(what))
    if isinstance(what, BaseException):
        raise what
    for why in what.left_out:
        assert re.fullmatch(f"{FOR_THE_MOMENT}|{case.leaves_out}", why)
    for report in what.reports:
        assert report.passed, str(report)
        assert all(re.fullmatch(case.refuses, why) for why in report.refusals)
        assert report.noise.ignored.keys() <= JUST_SET
    assert what.after[0] == what.before
    for after in what.after:
        assert list(after.records.values()) == list(what.before.records.values())


ON_THREE_NODES = {
    "kafka4-librdkafka-codecs": ["orders"],
    "kafka4-librdkafka-group": ["orders"],
    "kafka4-librdkafka-transactions": ["source", "sink"],
}
"""Scenario -> its topics."""


def leaders(first: int) -> dict[str, list[int]]:
    """Return who leads the partitions of all topics, another one for each `first`."""
    nodes = [(first + each) % 3 + 1 for each in range(2)]
    return {f"{name}.{each}": nodes for name, topics in ON_THREE_NODES.items() for each in topics}


def test_leaders_may_be_elsewhere(tmp_path: Path) -> None:
    shape = Shape(nodes=3)
    with fresh(shape) as cluster:
        create(cluster, leaders(0))
        recorded = {
            name: (record(cluster, name, tmp_path), found(cluster, name)) for name in ON_THREE_NODES
        }
    with fresh(shape) as cluster:
        create(cluster, leaders(1))
        for name, (capture, before) in recorded.items():
            with connects() as seen, Plan.of(capture) as plan:
                report = replay(plan, cluster.bootstrap())
            assert report.passed, str(report)
            assert not report.refusals
            assert seen <= set(cluster.bootstrap().split(","))
            assert found(cluster, name) == before
