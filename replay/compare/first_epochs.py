"""
Leader epochs of first offsets: an empty log may lack that of the offset where it starts.

Source: Kafka, UnifiedLog.fetchOffsetByTimestamp: for the earliest offset it returns the first entry
of the epoch cache, if there is one; a log without records has none after some operations.
"""

from __future__ import annotations

from construct import Container

from cluster.client.topic_admin import EARLIEST
from replay.model.outcome import Difference

_EARLIEST_LOCAL = -4
_FIRST = (EARLIEST, _EARLIEST_LOCAL)
"""Timestamps that stand for the first offset, of a log and of its local part (KIP-405)."""

_UNKNOWN = -1


def without_first_epochs(differences: list[Difference], request: Container) -> list[Difference]:
    """
    Return differences of a ListOffsets response, but for epochs of first offsets that one lacks.

    Args:
        differences: Those of the response.
        request: The body of its request.
    """
    if not any(_UNKNOWN in (each.captured, each.replayed) for each in differences):
        return differences
    first = {
        f"topics[{topic.name}].partitions[{partition.partition_index}].leader_epoch"
        for topic in request.topics
        for partition in topic.partitions
        if partition.timestamp in _FIRST
    }
    return [
        each
        for each in differences
        if each.path not in first or _UNKNOWN not in (each.captured, each.replayed)
    ]
