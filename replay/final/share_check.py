"""
Where share groups begin to read at the end, against the records that a pass acknowledged.

A broker moves the start of a share partition behind accepted and rejected records, and never beyond
a released one that it may deliver again. The stored start is written with an acknowledgement, and
does not count that one yet: what was answered before it was sent must be behind the start.

Source: KIP-932; SharePartition.acknowledge and rollbackOrProcessStateUpdates of Kafka 4.1, which
store the start of before; a record is delivered at least twice before it is archived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from construct import Container

from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.topic_admin import EARLIEST, offsets
from dissector.protocol.apis import KEYS
from replay.final.asking import ask_until
from replay.final.findings import Findings
from replay.mapping.id_map import IdMap
from replay.model.offset_ranges import Range, Ranges

_FETCH, _DESCRIBE = "ShareFetch", "DescribeShareGroupOffsets"
_ACKNOWLEDGING = {_FETCH: "acknowledge_error_code", "ShareAcknowledge": "error_code"}
_RESET = frozenset({"AlterShareGroupOffsets", "DeleteShareGroupOffsets"})
_GAP, _ACCEPT, _REJECT = 0, 1, 3
_FINAL = frozenset({_GAP, _ACCEPT, _REJECT})
"""Types of acknowledgements after which a record is not delivered again."""


class SharePlace(NamedTuple):
    """A group of the target, a topic's id there, and a partition."""

    group: str
    topic_id: UUID
    partition: int


@dataclass(slots=True)
class ShareLog:
    """
    What a group was given of a partition, and what it acknowledged, in offsets of the target.

    Attributes:
        given: Records that were given to a member.
        again: Those among them that were given more than once.
        done: Records that no member may get again.
        doubtful: Records whose acknowledgement the target refused, or has not answered.
        least: The start at the end, or an earlier one; -1 for none.
        step: The step of the newest acknowledgement.
    """

    given: Ranges = field(default_factory=Ranges)
    again: Ranges = field(default_factory=Ranges)
    done: Ranges = field(default_factory=Ranges)
    doubtful: Ranges = field(default_factory=Ranges)
    least: int = -1
    step: int = -1

    def reached(self) -> int:
        """Return the end of the records that are done without a gap from the first one on."""
        for each in self.done:
            if len(self.given) and each.start <= self.given.start < each.end:
                return each.end
        return -1

    def most(self) -> int | None:
        """Return the first record that the target must still have to deliver; None for none."""
        for each in self.given:
            for part in self.done.missing(*each):
                for rest in self.doubtful.missing(*part):
                    for once in self.again.missing(*rest):
                        return once.start
        return None


class ShareProgress:
    """The share partitions of a pass, by their places on the target."""

    def __init__(self) -> None:
        self.logs: dict[SharePlace, ShareLog] = {}
        self._sent: dict[int, list[tuple[SharePlace, int, list[Range]]]] = {}

    def record_request(self, api: str, body: Container, step: int) -> None:
        """Record a request that is about to be sent; until its response it may have any effect."""
        if api in _RESET or api == "DeleteGroups":
            groups = body.get("groups_names") or [body.get("group_id")]
            self.logs = {at: log for at, log in self.logs.items() if at.group not in groups}
        elif api in _ACKNOWLEDGING:
            sent = []
            for place, each in _partitions(body.group_id, body.topics):
                if batches := each.acknowledgement_batches:
                    log = self.logs.setdefault(place, ShareLog())
                    log.step = step
                    done = list(_final(batches))
                    for part in done:
                        log.doubtful.add(*part)
                    sent.append((place, log.reached(), done))
            self._sent[id(body)] = sent

    def record_response(self, api: str, body: Container, response: Container) -> None:
        """Record the response to a request."""
        if api not in _ACKNOWLEDGING:
            return
        sent = self._sent.pop(id(body), [])
        answers = dict(_partitions(body.group_id, response.responses))
        for place, reached, done in sent if not response.error_code else ():
            answer, log = answers.get(place), self.logs.get(place)
            if log is None or answer is None or answer[_ACKNOWLEDGING[api]]:
                continue
            log.least = max(log.least, reached)
            for part in done:
                log.done.add(*part)
                log.doubtful.remove(*part)
        for place, each in answers.items() if api == _FETCH else ():
            for given in each.acquired_records:
                log = self.logs.setdefault(place, ShareLog())
                start, end = given.first_offset, given.last_offset + 1
                for before in [*log.given.within(start, end)]:
                    log.again.add(*before)
                if given.delivery_count > 1:
                    log.again.add(start, end)
                log.given.add(start, end)


def _partitions(group: str, topics: list[Container]) -> Iterator[tuple[SharePlace, Container]]:
    for topic in topics:
        for each in topic.partitions:
            yield SharePlace(group, topic.topic_id, each.partition_index), each


def _final(batches: list[Container]) -> Iterator[Range]:
    """Yield the records of acknowledgements that are not delivered again."""
    for batch in batches:
        first, types = batch.first_offset, list(batch.acknowledge_types)
        if len(types) == 1:
            runs = [(first, batch.last_offset + 1, types[0])]
        else:
            runs = [(first + at, first + at + 1, kind) for at, kind in enumerate(types)]
        for start, end, kind in runs:
            if kind in _FINAL and 0 <= start < end:
                yield Range(start, end)


async def check_shares(
    progress: ShareProgress, ids: IdMap, cluster: Cluster, findings: Findings
) -> None:
    """Compare the stored starts of share partitions with what was acknowledged."""
    if KEYS[_DESCRIBE] not in cluster.versions:
        return
    for group in sorted({place.group for place in progress.logs}):
        if ("group", ids.names.unprefixed(group)) in ids.foreign:
            continue
        wanted = {at: log for at, log in progress.logs.items() if at.group == group}

        async def starts(group: str = group) -> dict[SharePlace, int]:
            return await _starts(group, cluster)

        def are_settled(
            found: dict[SharePlace, int], wanted: dict[SharePlace, ShareLog] = wanted
        ) -> bool:
            return all(found.get(at, log.least) >= log.least for at, log in wanted.items())

        found = await ask_until(cluster, starts, are_settled)
        for place in sorted(wanted.keys() & found.keys()):
            name = ids.live_topics.topic_name(place.topic_id)
            if name is not None and wanted[place].step >= 0:
                at = ids.names.captured_topic(name), place.partition
                first = await offsets(cluster, [(name, place.partition)], EARLIEST)
                bound = first.get((name, place.partition), 0)
                _compare(at, wanted[place], (found[place], bound), ids, findings)


async def _starts(group: str, cluster: Cluster) -> dict[SharePlace, int]:
    """Return the start of each share partition that the target has stored one for."""
    node = await cluster.coordinator(CoordinatorType.GROUP, group)
    body = {"groups": [{"group_id": group, "topics": None}]}
    response = await cluster.request(node, _DESCRIBE, body)
    return {
        place: each.start_offset
        for of_group in response.groups
        if not of_group.error_code
        for place, each in _partitions(group, of_group.topics)
        if not each.error_code
    }


def _compare(
    at: tuple[str, int], log: ShareLog, starts: tuple[int, int], ids: IdMap, findings: Findings
) -> None:
    """Compare the start of a share partition; `starts` has that of the log too."""
    start, earliest = starts
    path, most = f"topics[{at[0]}].partitions[{at[1]}].start_offset", log.most()

    def text(offset: int) -> str:
        return f"offset {ids.offsets.captured(*at, offset)}"

    found = f"{text(start) if start >= 0 else 'none'} at the end ({_DESCRIBE})"
    if start < log.least:
        findings.add(log.step, path, f"{text(log.least)} or later", found)
    elif most is not None and earliest <= most < start:
        findings.add(log.step, path, f"{text(most)} or earlier, as it was not acknowledged", found)
