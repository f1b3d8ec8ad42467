"""Traffic recorded on one fresh cluster has the same effect on another of the same version."""

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
    # Third-party clients in threads may leave a connection to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed (transport )?<:ResourceWarning"),
    # Requests that librdkafka's admin client warns about are sent nevertheless.
    pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning"),
]

FOR_THE_MOMENT = r"was refused temporarily \(\w+\), and retried"


TESTED = "test_replay_at_the_same_version_has_the_same_effect"


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest) -> Outcomes:
    """Play the cases that are tested: all, or those of a share."""
    names = {each.name for each in request.session.items}
    lines = [
        (shape, tuple(each for each in cases if f"{TESTED}[{each.name}]" in names))
        for shape, cases in LINES
    ]
    outcomes = play_all(tuple(line for line in lines if line[1]))
    gc.collect()  # objects left by clients, in this test only
    return outcomes


@pytest.mark.parametrize("name", CASES)
def test_replay_at_the_same_version_has_the_same_effect(
    played: Outcomes, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Record and replay; scenarios that differ are repeated alone.

    On a busy machine a member's session may expire, in the capture or in the replay.
    """
    shape, case = CASES[name]
    try:
        _check(case, played[name])
    except Exception as error:
        with capsys.disabled():
            print(f"\n{name} is played again, alone, as it differed: {error}")
        _check(case, play_alone(shape, case))


def _check(case: Case, what: Played | BaseException) -> None:
    """Check the results of a case."""
    if isinstance(what, FileNotFoundError):  # an unavailable client of another language
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
    """Return the leaders of the partitions of all topics, rotated by `first`."""
    nodes = [(first + each) % 3 + 1 for each in range(2)]
    return {f"{name}.{each}": nodes for name, topics in ON_THREE_NODES.items() for each in topics}


def test_leaders_may_be_on_other_nodes(tmp_path: Path) -> None:
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
