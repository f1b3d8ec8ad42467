"""
What a pass removed: members that left, deleted groups and deleted topics are gone at the end.

A removal counts only if it was acknowledged, and nothing that may bring its object back was sent
beside it or later. Source: KIP-62 and KIP-345 (LeaveGroup), KIP-848, KIP-932 and KIP-1071 (member
epoch -1), KIP-229 (DeleteGroups).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from construct import Container

from cluster.client.cluster import Cluster, CoordinatorType
from dissector.protocol.apis import KEYS
from replay.final.asking import ask_until
from replay.final.findings import Findings
from replay.mapping.id_map import IdMap

_LEFT, _JOINS = -1, 0
"""Member epoch of a member that leaves, and the first one of a member that stays."""

_DESCRIBING = {
    "LeaveGroup": "DescribeGroups",
    "ConsumerGroupHeartbeat": "ConsumerGroupDescribe",
    "ShareGroupHeartbeat": "ShareGroupDescribe",
    "StreamsGroupHeartbeat": "StreamsGroupDescribe",
}
"""API by which members leave -> the one that lists members of such groups."""

_COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit", "AlterShareGroupOffsets"})
"""APIs besides joins that create groups."""


class Removed(NamedTuple):
    """An object of the target: a topic, a group, or with a member id a member of it."""

    kind: str
    name: str
    member: str = ""


class Removal(NamedTuple):
    """The step of a removal, and its API."""

    step: int
    api: str


class Removals:
    """
    The removals of a pass.

    Attributes:
        found: What the target has removed, by its word.
    """

    def __init__(self) -> None:
        self.found: dict[Removed, Removal] = {}
        self._sent: dict[Removed, Removal] = {}
        self._reviving: Counter[Removed] = Counter()

    def record_request(self, api: str, body: Container, step: int) -> None:
        """Record a request that is about to be sent."""
        for each in _revived(api, body):
            self._reviving[each] += 1
            self._sent.pop(each, None)
            self.found.pop(each, None)
        for each in _removed(api, body):
            if not self._reviving[each]:
                self._sent[each] = Removal(step, api)

    def record_response(self, api: str, body: Container, response: Container) -> None:
        """Record the response to a request."""
        for each in _revived(api, body):
            self._reviving[each] -= 1
        refused = set(_refused(api, body, response))
        for each in _removed(api, body):
            removal = self._sent.pop(each, None)
            if removal is not None and each not in refused:
                self.found[each] = removal


def _revived(api: str, body: Container) -> Iterator[Removed]:
    """Yield what a request may create."""
    if api == "CreateTopics":
        yield from (Removed("topic", each.name) for each in body.topics)
    elif api == "Metadata" and body.get("allow_auto_topic_creation", True):
        names = (each.get("name") for each in body.topics or ())
        yield from (Removed("topic", name) for name in names if name)
    elif api == "JoinGroup" or (api in _DESCRIBING and body.get("member_epoch", -1) >= _JOINS):
        yield Removed("group", body.group_id)
        yield Removed("member", body.group_id, body.member_id)
    elif api in _COMMITS:
        yield Removed("group", body.group_id)


def _removed(api: str, body: Container) -> Iterator[Removed]:
    """Yield what a request removes; topics by name only."""
    if api == "DeleteTopics":
        names = [*(body.get("topic_names") or ())]
        names += (each.get("name") for each in body.get("topics") or ())
        yield from (Removed("topic", name) for name in names if name)
    elif api == "DeleteGroups":
        yield from (Removed("group", name) for name in body.groups_names)
    elif api == "LeaveGroup":
        members = [each.member_id for each in body.get("members") or ()]
        members += [body["member_id"]] if body.get("member_id") else []
        yield from (Removed("member", body.group_id, each) for each in members if each)
    elif api in _DESCRIBING and body.member_epoch == _LEFT:
        yield Removed("member", body.group_id, body.member_id)


def _refused(api: str, body: Container, response: Container) -> Iterator[Removed]:
    """Yield what a response says was not removed."""
    if response.get("error_code"):
        yield from _removed(api, body)
    elif api == "DeleteTopics":
        yield from (Removed("topic", e.name or "") for e in response.responses if e.error_code)
    elif api == "DeleteGroups":
        yield from (Removed("group", e.group_id) for e in response.results if e.error_code)
    elif api == "LeaveGroup":
        members = [each.member_id for each in response.get("members") or () if each.error_code]
        yield from (Removed("member", body.group_id, each) for each in members)


async def check_removals(
    removals: Removals, ids: IdMap, cluster: Cluster, findings: Findings
) -> None:
    """Look for removed objects at the target."""
    topics: dict[Removed, Removal] = {}
    groups: dict[Removed, Removal] = {}
    for each, removal in removals.found.items():
        if each.kind == "topic":
            own, place = topics, ("topic", ids.names.captured_topic(each.name))
        else:
            own, place = groups, ("group", ids.names.unprefixed(each.name))
        # Members that an incomplete capture lacks are joined again where they are needed.
        if place not in ids.foreign and not (each.member and ids.is_partial):
            own[each] = removal
    await _check_topics(topics, ids, cluster, findings)
    for each, removal in groups.items():
        api = _DESCRIBING.get(removal.api, "ListGroups")
        if KEYS[api] in cluster.versions and await _is_there(each, api, cluster):
            path = f"groups[{ids.names.unprefixed(each.name)}]"
            path += f".members[{each.member}]" if each.member else ""
            findings.add(removal.step, path, "removed", f"is there at the end ({api})")


async def _check_topics(
    own: dict[Removed, Removal], ids: IdMap, cluster: Cluster, findings: Findings
) -> None:
    """Look for deleted topics; wait until all brokers may know of it."""
    if not own:
        return

    async def remaining() -> list[Removed]:
        await cluster.refresh({each.name for each in own})
        return [each for each in own if each.name in cluster.topics]

    for each in await ask_until(cluster, remaining, lambda found: not found):
        path = f"topics[{ids.names.captured_topic(each.name)}]"
        findings.add(own[each].step, path, "removed", "is there at the end (Metadata)")


async def _is_there(removed: Removed, api: str, cluster: Cluster) -> bool:
    """Ask the coordinator for a group or a member."""
    node = await cluster.coordinator(CoordinatorType.GROUP, removed.name)
    asked: dict[str, Any] = {"states_filter": [], "types_filter": []}
    if removed.member:
        asked |= {"groups": [removed.name], "group_ids": [removed.name]}
        asked["include_authorized_operations"] = False
    response = await cluster.request(node, api, asked)
    if not removed.member:
        return any(each.group_id == removed.name for each in response.groups)
    return any(each.member_id == removed.member for e in response.groups for each in e.members)
