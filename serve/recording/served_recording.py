"""A capture in served form: exchanges on disk, an index by meaning, and logs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.engine.exchanges.stored_exchanges import ExchangeSpill
from serve.forms.canonical_body import TopicNames, canonical_body
from serve.matching.exchange_index import ExchangeIndex
from serve.recording.captured_cluster import CapturedCluster, StateHistory
from serve.recording.captured_log import CapturedLogs, TopicPartition

GroupPartition = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(slots=True)
class ProduceError:
    """
    A captured error response to Produce, for a partition.

    Attributes:
        after_records: Number of records the producer had appended before.
        result: The partition in the response.
    """

    after_records: int
    result: Container


@dataclass(slots=True)
class Recording:
    """
    Contents of a capture.

    Attributes:
        spill: Stored exchanges.
        topics: Topic names and ids.
        index: Exchanges by keys.
        cluster: Brokers, topics and coordinators.
        logs: Logs of partitions.
        offsets: States of ListOffsets results, by partition and timestamp.
        committed: States of committed offsets in OffsetFetch.
        produce_errors: Errors by producer and partition.
        produced_records: Number of records by producer and partition.
        fetch_errors: Errors by partition and position.
        refused_topics: Topics of these errors, also those the captured brokers did not know.
        groups: Group ids in the capture.
        transactional_ids: Transactional ids in the capture.
        by_api: API key -> numbers of exchanges, to find the nearest one.
        problems: Unreadable parts of the capture.
        answered: Number of answered requests.
        latencies: API -> number and sum of latencies in seconds, without empty Fetch responses.
    """

    spill: ExchangeSpill = field(default_factory=ExchangeSpill)
    topics: TopicNames = field(default_factory=TopicNames)
    index: ExchangeIndex = field(default_factory=ExchangeIndex)
    cluster: CapturedCluster = field(default_factory=CapturedCluster)
    logs: CapturedLogs = field(default_factory=CapturedLogs)
    offsets: dict[tuple[str, int, int], StateHistory[Container]] = field(default_factory=dict)
    committed: dict[GroupPartition, StateHistory[Container]] = field(default_factory=dict)
    produce_errors: dict[Hashable, list[ProduceError]] = field(default_factory=dict)
    produced_records: dict[Hashable, int] = field(default_factory=dict)
    fetch_errors: dict[tuple[str, int, int], list[Container]] = field(default_factory=dict)
    refused_topics: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    transactional_ids: set[str] = field(default_factory=set)
    by_api: dict[int, list[int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    answered: int = 0
    latencies: dict[str, tuple[int, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.answered

    def exchange(self, number: int) -> CapturedExchange:
        """Return an exchange."""
        return self.spill.get(number)

    def response(self, number: int) -> Container:
        """Return the canonical response of an exchange, as a new object."""
        message = self.spill.get(number).response_message()
        assert message is not None
        return canonical_body(message, self.topics)

    def request(self, number: int) -> Container:
        """Return the canonical request of an exchange, as a new object."""
        return canonical_body(self.spill.get(number).request_message(), self.topics)

    def time_ns(self, number: int) -> int:
        """Return the completion time of the request of an exchange."""
        return self.spill.times_ns(number)[0]

    def latency_s(self, number: int) -> float:
        """Return the latency of an exchange in seconds."""
        begun_ns, answered_ns = self.spill.times_ns(number)
        return 0.0 if answered_ns is None else max(0, answered_ns - begun_ns) / 1e9

    def mean_latency_s(self, api: str) -> float:
        """Return the mean latency of an API in seconds."""
        count, total_s = self.latencies.get(api, (0, 0.0))
        return total_s / count if count else 0.0

    def knows_topic(self, name: str) -> bool:
        """Return whether the capture has a topic."""
        is_named = name in self.cluster.topics or name in self.refused_topics
        return is_named or any(at[0] == name for at in self.logs)

    def partitions(self) -> Iterator[TopicPartition]:
        """Yield all partitions in the capture."""
        yield from self.cluster.partitions | set(self.logs)

    def close(self) -> None:
        """Delete the temporary files."""
        self.spill.close()
        self.logs.close()


def producer_key(body: Any, records_producer: int, epoch: int, client_id: str | None) -> Hashable:
    """Return the identity of a producer: id and epoch, or client id."""
    if records_producer >= 0:
        return records_producer, epoch
    return body.get("transactional_id"), client_id
