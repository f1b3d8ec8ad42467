"""What Produce and Fetch exchanges say of partitions, without decoded messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID


class PlainBatch(NamedTuple):
    """The header of a plain batch of magic 2; its attributes are those of `RecordBatch`."""

    base_offset: int
    last_offset_delta: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    partition_leader_epoch: int
    transactional: bool

    @property
    def control(self) -> bool:
        """No plain batch is a control batch."""
        return False


class PartitionResult(NamedTuple):
    """
    A partition in a Produce or Fetch exchange.

    Attributes:
        topic: The name of the topic, or its id if the messages have only that.
        partition: The number of the partition.
        path: Path of the partition in the response.
        records_path: Path of its records: in the request of Produce, in the response of Fetch.
        acks: The acks of Produce.
        error_code: The error code of the response.
        offset: The base offset of Produce, or the high watermark.
        start: The log start offset; -1 if unknown.
        batches: The batches of the records, each None if it is a plain message of magic 0 or 1,
            whose header no rule needs; None without records.
        transactional_id: The transactional id of Produce; None without one.
    """

    topic: str | UUID
    partition: int
    path: str
    records_path: str
    acks: int
    error_code: int
    offset: int
    start: int
    batches: Sequence[Any] | None
    transactional_id: str | None

    @property
    def name(self) -> str | None:
        """The name of the topic; None if only its id is known."""
        return self.topic if isinstance(self.topic, str) else None

    @property
    def topic_id(self) -> UUID | None:
        """The id of the topic; None if it has only a name."""
        return None if isinstance(self.topic, str) else self.topic
