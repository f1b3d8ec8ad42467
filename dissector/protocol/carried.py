"""
Where record batches travel: which messages carry `records` fields, for which topic and partition.

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
    """The names of the fields on the way to the records of one message."""

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
    Tell whether the records in a message may end with a part of a batch, as in what a broker sends.

    Returns:
        None where the message carries no records at all.
    """
    return kind == "response" if (key, kind) in _RECORDS_PATHS else None


@dataclass(slots=True)
class RecordsField:
    """
    The content of one `records` field.

    Attributes:
        topics: Name of the list of topics in the body, and
        topic_index: index in it.
        partitions: Name of the list of partitions in the topic, and
        partition_index: index in it.
        topic: Name of the topic; None where the message names it by id.
        topic_id: Id of the topic; None where the message names it by name.
        partition: Number of the partition.
        data: The bytes.
        batches: What is in them; their problems have paths and positions in `data`.
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
        """Of the field in the body: `topic_data[0].partition_data[1].records`."""
        return (
            f"{self.topics}[{self.topic_index}].{self.partitions}[{self.partition_index}].records"
        )


ReadRecords: TypeAlias = "Callable[[bytes, bool], list[Batch]]"
"""Reads the content of a `records` field; the flag: whether its last batch may be cut off."""


def read_field(data: bytes, may_be_cut: bool) -> list[Batch]:
    """Read the content of a `records` field, all records included."""
    from dissector.protocol.records.field import parse_records

    return parse_records(data, may_be_cut=may_be_cut)


def records_fields(message: Message, read: ReadRecords = read_field) -> Iterator[RecordsField]:
    """Yield the `records` fields that are not null of a message, in wire order."""
    carrier = _RECORDS_PATHS.get((message.api_key or 0, message.kind))
    if message.body is None or message.api_key is None or carrier is None:
        return
    for at, topic in enumerate(message.body[carrier.topics] or ()):
        name = topic.get("name", topic.get("topic"))
        for index, partition in enumerate(topic[carrier.partitions] or ()):
            data = partition["records"]
            if data is not None:
                yield RecordsField(
                    carrier.topics,
                    at,
                    carrier.partitions,
                    index,
                    name,
                    topic.get("topic_id"),
                    partition[carrier.partition_index],
                    data,
                    read(data, message.kind == "response"),
                )


def record_problems(message: Message) -> list[Problem]:
    """Return what is wrong with the records in a message, with positions in its frame."""
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
        )
        for field, problem in found
    ]


def _content_starts(message: Message) -> dict[str, int]:
    """Return where in the frame the content of each `records` field begins, by its path."""
    from dissector.protocol.spans import spans

    assert message.schema is not None
    root = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
    return {
        span.path: span.end - len(span.value)
        for span in root.leaves()
        if span.declared is not None and span.declared.type == "records" and span.value
    }
