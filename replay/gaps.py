"""
Which differences follow from what a capture lacks, as it begins midway or has gaps.

The target can't give records that the capture does not show to be produced, nor know positions among
them. Records that both sides have, and positions among those, are held against the capture as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dissector.protocol.messages import Message
from dissector.protocol.records import RecordBatch, parse_records
from replay.outcome import Difference
from replay.roles import Role, walk
from replay.step import Captured
from replay.world import World

_ASKED = frozenset({Role.OFFSET})
_ANSWERED = frozenset({Role.OFFSET, Role.RECORDS})


def follow_from_gap(
    captured: Captured, answered: Message, differences: Sequence[Difference], world: World
) -> bool:
    """
    Tell whether all differences are in partitions of whose records the capture lacks some.

    Args:
        captured: What was asked.
        answered: The captured answer.
        differences: Where the answer of the target is another.
        world: What the target has in the place of what was captured.
    """
    if not world.is_partial:
        return False
    lacking = set(_lacking(captured, answered, world))
    return bool(lacking) and all(
        any(f"[{topic}]." in each.path and f"[{partition}]" in each.path for topic, partition in lacking)
        for each in differences
    )


def _lacking(captured: Captured, answered: Message, world: World) -> Iterator[tuple[str, int]]:
    """Yield partitions, as captured, that an exchange is about and of which records are lacking."""
    asked = captured.asked()
    for message, wanted in ((asked, _ASKED), (answered, _ANSWERED)):
        if message.body is None or message.schema is None:
            continue
        for place in walk(message.schema, message.api_version or 0, message.body, wanted):
            topic, partition = world.topic_of(place.scope), place.scope.partition
            if topic is None or partition is None or not place.value:
                continue
            if place.role is Role.RECORDS:
                offsets = _data_offsets(place.value)
                if not all(world.offsets.has_record(topic, partition, each) for each in offsets):
                    yield topic, partition
            elif place.field.name in _POSITIONS and place.value > 0:
                if not world.offsets.knows(topic, partition, place.value):
                    yield topic, partition


_POSITIONS = frozenset({"fetch_offset", "offset", "committed_offset", "end_offset"})
"""Offsets of records; others move while nobody asks."""


def _data_offsets(data: bytes) -> Iterator[int]:
    """Yield the offsets of the records that are no ends of transactions."""
    for batch in parse_records(data):
        if not (isinstance(batch, RecordBatch) and batch.control):
            yield from (record.offset for record in batch.records)
