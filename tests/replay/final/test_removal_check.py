"""What a pass removed is not there at the end, unless something may have brought it back."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from construct import Container

from cluster.client.cluster import Cluster
from cluster.conversion.resource_names import NameMap
from dissector.protocol.apis import KEYS
from replay.final.findings import Findings
from replay.final.removal_check import Removals, check_removals
from replay.mapping.id_map import IdMap
from tests.replay.support.builders import topology


class Target:
    """A target with one topic, and one group with one member."""

    timeout_s = 0.0
    topics = ("t",)
    versions = dict.fromkeys(KEYS.values(), (0, 1))

    async def refresh(self, names: set[str]) -> None:
        """It knows all of them."""

    async def coordinator(self, kind: Any, key: str) -> int:
        return 1

    async def request(self, node: int, name: str, body: dict[str, Any]) -> Container:
        members = [Container(member_id="m")]
        return Container(groups=[Container(group_id="g", error_code=0, members=members)])


def body(**values: Any) -> Container:
    return Container(values)


def each_of(name: str, **more: Any) -> list[Container]:
    return [Container(name=name, **more)]


LEAVE = "LeaveGroup", body(group_id="g", members=[Container(member_id="m")])
LEAVE_ALONE = "LeaveGroup", body(group_id="g", member_id="m")
BEAT = "ConsumerGroupHeartbeat", body(group_id="g", member_id="m", member_epoch=-1)
DELETE = "DeleteGroups", body(groups_names=["g"])
DROP = "DeleteTopics", body(topics=each_of("t"))
DROP_BY_NAME = "DeleteTopics", body(topic_names=["t"])
DONE = body(
    error_code=0,
    responses=each_of("t", error_code=0),
    results=[Container(group_id="g", error_code=0)],
    members=[Container(member_id="m", error_code=0)],
)
REFUSED = body(
    error_code=0,
    responses=each_of("t", error_code=3),
    results=[Container(group_id="g", error_code=68)],
    members=[Container(member_id="m", error_code=25)],
)

JOIN = "JoinGroup", body(group_id="g", member_id="m")
JOIN_NEW = "ConsumerGroupHeartbeat", body(group_id="g", member_id="m", member_epoch=0)
COMMIT = "OffsetCommit", body(group_id="g")
CREATE = "CreateTopics", body(topics=each_of("t"))
ASK = "Metadata", body(topics=each_of("t"), allow_auto_topic_creation=True)

Sent = tuple[str, Container]


def said(removals: Removals, ids: IdMap | None = None) -> list[tuple[int, str]]:
    findings, ids = Findings(), ids or IdMap(topology({"t": 1}))
    asyncio.run(check_removals(removals, ids, cast(Cluster, Target()), findings))
    return [(each.step, each.difference.path) for each in findings.differences]


@pytest.mark.parametrize(
    ("removal", "path", "revivals"),
    [
        (LEAVE, "groups[g].members[m]", [JOIN]),
        (LEAVE_ALONE, "groups[g].members[m]", [JOIN]),
        (BEAT, "groups[g].members[m]", [JOIN_NEW]),
        (DELETE, "groups[g]", [JOIN, JOIN_NEW, COMMIT]),
        (DROP, "topics[t]", [CREATE, ASK]),
        (DROP_BY_NAME, "topics[t]", [CREATE, ASK]),
    ],
)
def test_what_was_removed_is_gone(removal: Sent, path: str, revivals: list[Sent]) -> None:
    def played(*before: Sent, answer: Container = DONE) -> Removals:
        removals = Removals()
        for each in before:
            removals.record_request(*each, 1)
        removals.record_request(*removal, 7)
        removals.record_response(*removal, answer)
        return removals

    assert said(played()) == [(7, path)]
    if removal is not BEAT:  # which has no error of its own for each member
        assert said(played(answer=REFUSED)) == []
    assert said(played(answer=Container({**DONE, "error_code": 16}))) == []
    for revival in revivals:
        assert said(played(revival)) == []  # it is under way
        removals = Removals()
        removals.record_request(*revival, 1)
        removals.record_response(*revival, DONE)
        removals.record_request(*removal, 7)
        removals.record_response(*removal, DONE)
        assert said(removals) == [(7, path)]
        removals.record_request(*revival, 8)
        assert said(removals) == []


def test_what_other_parts_change_and_joins_that_were_not_captured_are_not_judged() -> None:
    removals, ids = Removals(), IdMap(topology({"t": 1}), NameMap({"captured": "t"}))
    for each in (LEAVE, DELETE, DROP):
        removals.record_request(*each, 7)
        removals.record_response(*each, DONE)
    assert {path for _, path in said(removals, ids)} == {
        "groups[g].members[m]",
        "groups[g]",
        "topics[captured]",
    }
    ids.is_partial = True
    assert {path for _, path in said(removals, ids)} == {"groups[g]", "topics[captured]"}
    ids.foreign = frozenset({("topic", "captured"), ("group", "g")})
    assert not said(removals, ids)


def test_others_of_the_group_may_stay() -> None:
    removals, other = Removals(), body(group_id="g", member_id="other")
    removals.record_request("LeaveGroup", other, 7)
    removals.record_response("LeaveGroup", other, body(error_code=0))
    removals.record_request("ConsumerGroupHeartbeat", JOIN_NEW[1], 8)
    removals.record_response("ConsumerGroupHeartbeat", JOIN_NEW[1], DONE)
    assert said(removals) == []
