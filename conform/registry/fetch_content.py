"""What a Fetch exchange says of its session, from decoded messages or from columns."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias
from uuid import UUID

Partition: TypeAlias = tuple[str | UUID, int]
"""Name or id of the topic, as in the messages, and number of the partition."""


class PartitionOffsets(NamedTuple):
    """The last response for a partition; the next may omit the partition if nothing changed."""

    high_watermark: int
    log_start_offset: int


class FetchContent(NamedTuple):
    """
    What a Fetch exchange says of its session.

    Attributes:
        session_id: Session id of the request.
        epoch: Session epoch of the request; that of a full one in versions without sessions.
        offsets: The requested offsets of the listed partitions.
        forgotten: The partitions that the session drops.
        answered_id: Session id of the response; None without a response, or with an error.
        answers: The offsets of each partition of the response; None for an error.
        first_ends: Where columns show it, the last offset of the first batch of each answer; None
            without records.
    """

    session_id: int
    epoch: int
    offsets: dict[Partition, int]
    forgotten: tuple[Partition, ...]
    answered_id: int | None
    answers: list[tuple[Partition, PartitionOffsets | None]]
    first_ends: list[int | None]
