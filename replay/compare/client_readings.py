"""
Values that clients read alike: where a target may send null for what Kafka sends empty.

Only fields that the source of each client has been read for are in the table. Others look alike and
are not: a `SyncGroup` with an empty protocol name in place of null fails the Java client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from dissector.errors import UsageError
from replay.compare.ignore_rules import field_pattern
from replay.model.outcome import Difference


class Reading(NamedTuple):
    """
    The source that shows how a client reads null and empty in a field.

    Attributes:
        source: The file and the function in the client's own sources.
        since: The first release that reads both alike; empty if all do.
    """

    source: str
    since: tuple[int, ...] = ()


JAVA, LIBRDKAFKA, FRANZ_GO, SARAMA = CLIENTS = ("java", "librdkafka", "franz-go", "sarama")
"""The clients of the table, as `--for` takes them."""

_SOFTWARE = {
    JAVA: re.compile(r"apache-kafka-java v?([\d.]+)"),
    LIBRDKAFKA: re.compile(r"(?:rdkafka[ -]v?|librdkafka v?)([\d.]+)"),
    FRANZ_GO: re.compile(r"kgo v?([\d.]+)"),
    SARAMA: re.compile(r"sarama v?([\d.]+)"),
}
"""Client -> its name and release as ApiVersions shows them."""

_COMMITTED_METADATA: Mapping[str, Reading] = {
    JAVA: Reading("OffsetAndMetadata.java, constructor: null becomes NO_METADATA, which is empty"),
    LIBRDKAFKA: Reading("rdkafka_request.c, rd_kafka_handle_OffsetFetch: metadata_size 0 for both"),
    FRANZ_GO: Reading("pkg/kadm/groups.go, FetchOffsets: null becomes the empty string"),
    SARAMA: Reading(
        "offset_fetch_response.go, and real_decoder.go, which refused null in flexible versions",
        (1, 46, 3),
    ),
}

READ_ALIKE: Mapping[str, Mapping[str, Reading]] = MappingProxyType(
    {
        "Fetch.responses[*].partitions[*].aborted_transactions": {
            JAVA: Reading("CompletedFetch.java, abortedTransactions: null and empty are no queue"),
            LIBRDKAFKA: Reading("rdkafka_fetcher.c, rd_kafka_fetch_reply_handle_partition: > 0"),
            FRANZ_GO: Reading("pkg/kgo/source.go, buildAborter: a length of 0"),
            SARAMA: Reading("fetch_response.go, getAbortedTransactions: a loop over none"),
        },
        "OffsetFetch.groups[*].topics[*].partitions[*].metadata": _COMMITTED_METADATA,
        "OffsetFetch.topics[*].partitions[*].metadata": _COMMITTED_METADATA,
    }
)
"""Field -> client -> the source by which it reads null and empty alike."""


class ClientReadings:
    """
    The clients whose view of a response counts.

    Args:
        clients: The clients, of `CLIENTS`; without any, all.
        software: Captured connection -> its software, as ApiVersions shows it.

    Attributes:
        clients: The clients.

    Raises:
        UsageError: A client is not in the table.
    """

    def __init__(
        self, clients: Iterable[str] = (), software: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        self.clients = checked_clients(clients) or CLIENTS
        self._software = software

    def are_alike(self, api: str, connection: int, difference: Difference) -> bool:
        """
        Return whether the clients see no difference.

        The release of a connection's client counts if the capture shows it.

        Args:
            api: The name of the API.
            connection: The captured connection.
            difference: The difference of the response.
        """
        before, after = difference.captured, difference.replayed
        if before or after or (before is None) == (after is None):
            return False
        readings = READ_ALIKE.get(field_pattern(api, difference.path), {})
        return all(each in readings for each in self.clients) and not self._is_older(
            readings, self._software.get(connection, "")
        )

    def _is_older(self, readings: Mapping[str, Reading], software: str) -> bool:
        """Return whether the software is an older release of a client, with another reading."""
        for client in self.clients:
            found = _SOFTWARE[client].search(software)
            if found is not None and _release(found[1]) < readings[client].since:
                return True
        return False


def checked_clients(names: Iterable[str]) -> tuple[str, ...]:
    """
    Return names of clients in the spelling of `CLIENTS`.

    Raises:
        UsageError: A name is not one of them.
    """
    found = tuple(dict.fromkeys(name.lower() for name in names))
    for name in found:
        if name not in CLIENTS:
            raise UsageError(f"--for takes {', '.join(CLIENTS)}, not {name!r}")
    return found


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)
