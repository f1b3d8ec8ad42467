"""Record batches, the input of rules on batches, with the exchange that carries them."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from conform.evidence.observation import Observation
from conform.registry.field_range import span_of
from conform.registry.partition_results import PartitionResult, PlainBatch
from dissector.protocol.messages import Message
from dissector.protocol.records import Batch
from dissector.protocol.records_fields import RecordsField


class DecodedRecords(NamedTuple):
    """
    A decoded `records` field.

    Attributes:
        message: The Produce request or the Fetch or ShareFetch response.
        field: The field, with topic, partition and batches.
    """

    message: Message
    field: RecordsField


class BatchObservation(Observation):
    """
    A record batch, or a message set, with the exchange that carries it.

    Attributes:
        index: Index of the batch in its `records` field.
    """

    def __init__(
        self, observation: Observation, records: DecodedRecords | PartitionResult, index: int
    ) -> None:
        """Begin; `records` are the field, or what columns show of it if its batches are plain."""
        self.__dict__.update(observation.__dict__)
        self._records = records
        self.index = index

    @property
    def header(self) -> PlainBatch | None:
        """The header of a plain batch that needs not be decoded; None: there is only `batch`."""
        records = self._records
        if isinstance(records, DecodedRecords) or records.batches is None:
            return None
        header: PlainBatch | None = records.batches[self.index]
        return header

    @cached_property
    def _decoded_records(self) -> DecodedRecords:
        records = self._records
        if isinstance(records, DecodedRecords):
            return records
        found = (each for each in self.record_fields if each[1].path == records.records_path)
        return DecodedRecords(*next(found))

    @property
    def message(self) -> Message:
        """The Produce request or the Fetch or ShareFetch response."""
        return self._decoded_records.message

    @property
    def field(self) -> RecordsField:
        """The `records` field that holds the batch: topic, partition, bytes."""
        return self._decoded_records.field

    @cached_property
    def batch(self) -> Batch:
        """The batch, with its records and problems; positions are relative to the field."""
        return self.field.batches[self.index]

    @property
    def topic(self) -> str:
        """The name of the topic, or its id as text if the capture does not contain the name."""
        return self.topic_name(self.field.topic, self.field.topic_id)

    @property
    def partition(self) -> int:
        """The number of the partition."""
        return self.field.partition

    @property
    def path(self) -> str:
        """The path of the batch: `topic_data[0].partition_data[1].records[2]`."""
        records = self._records
        if isinstance(records, DecodedRecords):
            return f"{records.field.path}[{self.index}]"
        return f"{records.records_path}[{self.index}]"

    def span(self, start: int = 0, end: int | None = None) -> tuple[int, int]:
        """Return the byte range in the frame of part of the batch; by default of all of it."""
        found = span_of(self.message, self.field.path)
        content = found[1] - len(self.field.data) if found else 0
        first = content + self.batch.position
        if end is None:
            following = self.field.batches[self.index + 1 : self.index + 2]
            stop = following[0].position if following else len(self.field.data)
            return first + start, content + stop
        return first + start, first + end
