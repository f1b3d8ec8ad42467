"""Share and streams groups: members and epochs equal those in the log of the coordinator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.broker.conftest import StartCluster
from tests.broker.replay.support.recording import record
from tests.broker.server_properties import Shape
from tests.broker.timeline.test_causes import logged
from timeline.events.event import Event

pytestmark = pytest.mark.broker

_JOINED = re.compile(
    r"Member (\S+) joins the share group|MemberId (\S+)\] Member joins the streams"
)
_LEFT = re.compile(
    r"Member (\S+) left the share group|MemberId (\S+)\] Member \S* ?left the streams"
)
_BUMPED = re.compile(r"Bumped (?:\w+ )?group epoch to (\d+)")

SHOWN_DIGITS = 6
"""Of a member's id that the timeline shows at least."""


def steps_in(log: str, group: str) -> list[tuple[str, str, int | None]]:
    """
    Return joins and leaves in the order of the log, with the resulting epochs.

    The coordinator raises the epoch at a leave too, without a line.
    """
    steps: list[tuple[str, str, int | None]] = []
    epoch = 0
    for line in log.splitlines():
        if f"[GroupId {group}]" not in line:
            continue
        if found := _LEFT.search(line):
            epoch += 1
            steps.append(("left", _member(found), epoch))
        elif found := _JOINED.search(line):
            steps.append(("joined", _member(found), None))
        elif found := _BUMPED.search(line):
            epoch = int(found[1])
            if steps and steps[-1][2] is None:
                steps[-1] = (*steps[-1][:2], epoch)
    return steps


def _member(found: re.Match[str]) -> str:
    return (found[1] or found[2])[:SHOWN_DIGITS]


def steps_of(events: list[Event]) -> list[tuple[str, str]]:
    """Return joins and leaves in the order of requests."""
    found = []
    for each in events:
        if each.kind == "group" and each.event in ("joined", "left"):
            assert each.certain
            name = each.text.split()[0]
            found.append((each.event, name.rpartition("-")[2][:SHOWN_DIGITS]))
    return found


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("kafka4-java-share-group", "kafka4-java-share-group.orders.group"),
        ("kafka44-java-streams-group", "kafka44-java-streams-group.orders.streams"),
    ],
)
def test_members_and_epochs(kafka: StartCluster, tmp_path: Path, name: str, group: str) -> None:
    cluster = kafka(Shape())
    events, log = logged(cluster, lambda: record(cluster, name, tmp_path))
    steps = steps_in(log, group)
    assert steps_of(events) == [(word, member) for word, member, _ in steps]
    causes = {epoch: (word, member) for word, member, epoch in steps if epoch is not None}
    assert causes
    for each in events:
        if (each.kind, each.event) == ("group", "rebalance") and each.subject == group:
            epoch = re.match(r"epoch (?:\d+ to )?(\d+): (.*?);", each.text)
            assert epoch is not None
            if each.certain or (each.cause != "unknown" and "to" in each.text.split(":")[0]):
                word, member = causes[int(epoch[1])]
                assert each.cause == word
                assert member in epoch[2]
            else:
                assert not each.certain
