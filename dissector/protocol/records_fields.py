"""
The `records` fields of messages: the APIs with such fields, and the topic and partition of each.

Source: Kafka, ProduceRequest.json, FetchResponse.json, ShareFetchResponse.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from uuid import UUID

from dissector.errors import Problem
from dissector.protocol.messages import Message

if TYPE_CHECKING:
    from dissector.protocol.records.field import Batch


class _RecordsPath(NamedTuple):
    """Names of the fields that lead to the records of a message."""

    topics: str
    partitions: str
    partition_index: str


_RECORDS_PATHS = {
    (0, "request"): _RecordsPath("topic_data", "partition_data", "index"),
    (1, "response"): _RecordsPath("responses", "partitions", "partition_index"),
    (78, "response"): _RecordsPath("responses", "partitions", "partition_index"),
}


def may_be_cut(key: int, kind: str) -> bool | None:
    """
    Return whether a message's records may end with an incomplete batch, as in Fetch responses.

    Returns:
        None if the message has no records field.
    """
    return kind == "response" if (key, kind) in _RECORDS_PATHS else None


@dataclass(slots=True, eq=False, repr=False)
class RecordsField:
    """
    The content of one `records` field.

    Attributes:
        topics: Name of the array of topics in the body.
        topic_index: Index of the topic in that array.
        partitions: Name of the array of partitions in the topic.
        partition_index: Index of the partition in that array.
        topic: Name of the topic; None if the message identifies it by id.
        topic_id: Id of the topic; None if the message identifies it by name.
        partition: Number of the partition.
        data: The bytes of the field.
        batches: The decoded batches; their problems have paths and positions relative to `data`.
    """

    topics: str
    topic_index: int
    partitions: str
    partition_index: int
    topic: str | None
    topic_id: UUID | None
    partition: int
    data: bytes
    batches: list[Batch]

    @property
    def path(self) -> str:
        """Path of the field in the body: `topic_data[0].partition_data[1].records`."""
        return (
            f"{self.topics}[{self.topic_index}].{self.partitions}[{self.partition_index}].records"
        )


ReadRecords: TypeAlias = "Callable[[bytes, bool], list[Batch]]"
"""Decodes the content of a `records` field; the flag allows an incomplete last batch."""


def read_field(data: bytes, may_be_cut: bool) -> list[Batch]:
    """Decode the content of a `records` field, all records included."""
    from dissector.protocol.records.field import parse_records

    return parse_records(data, may_be_cut=may_be_cut)


def records_fields(message: Message, read: ReadRecords = read_field) -> Iterator[RecordsField]:
    """Yield the non-null `records` fields of a message in wire order."""
    path = _RECORDS_PATHS.get((message.api_key or 0, message.kind))
    if message.body is None or message.api_key is None or path is None:
        return
    for topic_index, topic in enumerate(message.body[path.topics] or ()):
        name = topic.get("name", topic.get("topic"))
        for partition_index, partition in enumerate(topic[path.partitions] or ()):
            data = partition["records"]
            if data is not None:
                yield RecordsField(
                    path.topics,
                    topic_index,
                    path.partitions,
                    partition_index,
                    name,
                    topic.get("topic_id"),
                    partition[path.partition_index],
                    data,
                    read(data, message.kind == "response"),
                )


def record_problems(message: Message) -> list[Problem]:
    """Return the problems of the records in a message, with positions in its frame."""
    found = [
        (field, problem)
        for field in records_fields(message)
        for b in field.batches
        for problem in b.problems
    ]
    if not found:
        return []
    starts = _content_starts(message)
    return [
        Problem(
            problem.what,
            f"{message.kind}.{field.path.removesuffix('records')}{problem.path}",
            None if problem.position is None else problem.position + starts[field.path],
            problem.kind,
        )
        for field, problem in found
    ]


def _content_starts(message: Message) -> dict[str, int]:
    """Return the offset in the frame of each `records` field's content, by path."""
    from dissector.protocol.spans import spans

    assert message.schema is not None
    root = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
    return {
        span.path: span.end - len(span.value)
        for span in root.leaves()
        if span.declared is not None and span.declared.type == "records" and span.value
    }
