"""What a share group acknowledged is behind its start at the end; what it released is not."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from construct import Container

from cluster.client.cluster import Cluster
from dissector.protocol.apis import KEYS
from replay.final import share_check
from replay.final.findings import Findings
from replay.final.share_check import ShareProgress, check_shares
from replay.mapping.id_map import IdMap
from tests.replay.support.builders import topology, uuid

ACCEPT, RELEASE, REJECT = 1, 2, 3


class Target:
    """A target that has stored the start of one share partition."""

    timeout_s = 0.0

    def __init__(self, start: int) -> None:
        self.versions = {KEYS["DescribeShareGroupOffsets"]: (0, 1)}
        self._start = start

    async def coordinator(self, kind: Any, key: str) -> int:
        return 1

    async def request(self, node: int, name: str, body: dict[str, Any]) -> Container:
        partition = Container(partition_index=0, start_offset=self._start, error_code=0)
        topic = Container(topic_id=uuid(1), partitions=[partition])
        return Container(groups=[Container(error_code=0, topics=[topic])])


class Member:
    """Fetches and acknowledges records of a group."""

    def __init__(self, progress: ShareProgress) -> None:
        self._progress = progress
        self._step = 0

    def fetch(self, first: int, last: int, count: int = 1) -> None:
        acquired = Container(first_offset=first, last_offset=last, delivery_count=count)
        self._ask("ShareFetch", [], [acquired])

    def acknowledge(self, first: int, last: int, *types: int, error: int = 0) -> None:
        batch = Container(first_offset=first, last_offset=last, acknowledge_types=list(types))
        self._ask("ShareAcknowledge", [batch], [], error)

    def _ask(self, api: str, sent: list[Any], acquired: list[Any], error: int = 0) -> None:
        self._step += 1
        asked = Container(partition_index=0, acknowledgement_batches=sent)
        topics = [Container(topic_id=uuid(1), partitions=[asked])]
        body = Container(group_id="g", topics=topics)
        found = Container(partition_index=0, error_code=error, acknowledge_error_code=error)
        found.acquired_records = acquired
        responses = [Container(topic_id=uuid(1), partitions=[found])]
        self._progress.record_request(api, body, self._step)
        self._progress.record_response(api, body, Container(error_code=0, responses=responses))


@pytest.fixture
def progress() -> ShareProgress:
    return ShareProgress()


@pytest.fixture
def member(progress: ShareProgress) -> Member:
    return Member(progress)


@pytest.fixture(autouse=True)
def earliest(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}

    async def offsets(*_: Any) -> dict[tuple[str, int], int]:
        return found

    monkeypatch.setattr(share_check, "offsets", offsets)
    return found


def said(progress: ShareProgress, start: int) -> list[str]:
    """The differences at a target with this start."""
    findings, ids = Findings(), IdMap(topology({"t": 1}))
    asyncio.run(check_shares(progress, ids, cast(Cluster, Target(start)), findings))
    return [
        f"{each.difference.captured}; {each.difference.replayed}" for each in findings.differences
    ]


def test_accepted_and_rejected_records_are_behind_the_start(
    progress: ShareProgress, member: Member
) -> None:
    member.fetch(10, 19)
    member.acknowledge(10, 12, ACCEPT)
    member.acknowledge(13, 14, REJECT)
    assert not said(progress, 13)  # the second acknowledgement may not count yet
    assert not said(progress, 15)
    (found,) = said(progress, 10)
    assert found == "offset 13 or later; offset 10 at the end (DescribeShareGroupOffsets)"
    assert "none at the end" in said(progress, -1)[0]


def test_a_released_record_is_not_behind_the_start(
    progress: ShareProgress, member: Member, earliest: dict[tuple[str, int], int]
) -> None:
    member.fetch(0, 4)
    member.acknowledge(0, 4, ACCEPT, RELEASE, ACCEPT, ACCEPT, ACCEPT)
    assert not said(progress, 0)
    assert not said(progress, 1)
    assert "offset 1 or earlier" in said(progress, 2)[0]
    earliest["t", 0] = 2
    assert not said(progress, 2)  # the log has lost the record


def test_what_was_delivered_again_may_be_archived(progress: ShareProgress, member: Member) -> None:
    member.fetch(0, 4)
    member.acknowledge(0, 4, RELEASE)
    member.fetch(0, 2)
    member.fetch(3, 4, count=2)
    assert not said(progress, 5)


def test_refused_acknowledgements_prove_nothing(progress: ShareProgress, member: Member) -> None:
    member.fetch(0, 4)
    member.acknowledge(0, 4, ACCEPT, error=121)
    member.acknowledge(0, 4, ACCEPT, error=121)
    assert not said(progress, 0)
    assert not said(progress, 5)


def test_an_acknowledgement_behind_a_gap_does_not_move_the_start(
    progress: ShareProgress, member: Member
) -> None:
    member.fetch(0, 9)
    member.acknowledge(5, 9, ACCEPT)
    member.acknowledge(1, 2, ACCEPT)
    assert not said(progress, 0)


def test_a_group_with_other_offsets_is_not_judged(progress: ShareProgress, member: Member) -> None:
    member.fetch(0, 4)
    member.acknowledge(0, 2, ACCEPT)
    member.acknowledge(3, 4, ACCEPT)
    progress.record_request("AlterShareGroupOffsets", Container(group_id="g"), 9)
    assert not said(progress, 0)
