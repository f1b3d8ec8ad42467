"""
Read bounds of partitions in Fetch responses that return fewer records than the bounds allow.

A broker takes the bounds (high watermark, last stable offset) before it reads, and stops below
them only at the limits of the request or at the end of a segment. Other records below them that
it does not return are withheld.
Source: ReplicaManager.readFromLog, Partition.readRecords of Kafka 3.9; KIP-74.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from construct import Container

from cluster.fields.field_layout import Scope
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from replay.mapping.id_map import IdMap
from replay.mapping.reader_accounts import ReturnedRecords
from replay.model.offset_ranges import Ranges

_Log = tuple[str | None, int]


def with_readable_ends(
    returned: Sequence[ReturnedRecords],
    captured: CapturedExchange,
    response: Container,
    live: Container,
    ids: IdMap,
) -> Iterator[ReturnedRecords]:
    """
    Yield the records of partitions, with the bound where the target could have returned more.

    Args:
        returned: The records in both responses.
        captured: The captured request.
        response: Body of the captured Fetch response.
        live: Body of the Fetch response of the target.
        ids: The id mapping.
    """
    if all(_reaches(each.live, each.captured) for each in returned):
        yield from returned
        return
    live_partitions = dict(_partitions(live, ids, is_live=True))
    captured_partitions = dict(_partitions(response, ids, is_live=False))
    spare_bytes = _room(captured, live)
    for each in returned:
        log = each.topic, each.partition
        before, after = captured_partitions.get(log), live_partitions.get(log)
        if before is not None and after is not None and not after.error_code:
            missing_bytes = len(before.records or b"") - len(after.records or b"")
            each = (
                each._replace(readable_end=_readable_end(each, after, ids))
                # The captured bytes are our limit: a broker with more records fills it,
                # if only with a part of the next batch.
                if 0 < missing_bytes <= spare_bytes
                else each
            )
        yield each


def _reaches(live: Ranges, captured: Ranges) -> bool:
    return not len(captured) or (len(live) > 0 and live.end >= captured.end)


def _readable_end(given: ReturnedRecords, partition: Container, ids: IdMap) -> int:
    """Return the captured offset below which a partition is readable for all clients."""
    stable = partition.get("last_stable_offset", -1)
    bounds = [partition.high_watermark] + ([stable] if stable >= 0 else [])
    log = ids.offsets.log(given.topic, given.partition)
    return log.captured_offset(min(bounds) - 1) + 1 if min(bounds) > 0 else 0


def _room(captured: CapturedExchange, live: Container) -> float:
    """Return the unused bytes of the response; unlimited in old versions."""
    request = captured.request_message().body
    max_bytes = None if request is None else request.get("max_bytes")
    used = sum(len(e.records or b"") for topic in live.responses for e in topic.partitions)
    return inf if max_bytes is None else max_bytes - used


def _partitions(body: Container, ids: IdMap, *, is_live: bool) -> Iterator[tuple[_Log, Container]]:
    for topic in body.responses:
        scope = Scope(topic=topic.get("topic"), topic_id=topic.get("topic_id"))
        title = ids.topic_of(ids.captured_scope(scope) if is_live else scope)
        for each in topic.partitions:
            yield (title, each.partition_index), each
