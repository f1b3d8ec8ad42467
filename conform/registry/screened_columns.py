"""What screens see of the exchanges of a window, and of their partitions, in columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import NONE, Exchanges

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]

NO_OFFER, UNKNOWN_OFFER = -1, -2
"""In place of an offer: there is none, or columns do not show it."""

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
"""Session epochs of full Fetch requests: the first begins a session, the second has none."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldBatches:
    """
    The batches of the `records` fields of a window, a row for each field; see `plain_batches`.

    Attributes:
        start: Address of the field.
        acks: The acks of its Produce request.
        is_plain: Whether all its batches are plain; the rest says nothing of others.
        count: The number of its batches.
        last_base: The highest base offset of batches of magic 2; messages count as -1.
        first_end: The last offset of its first batch.
        is_ascending: Whether each batch ends above the previous one.
        is_idempotent: Whether a batch has a producer id.
    """

    start: Ints
    acks: Ints
    is_plain: Bools
    count: Ints
    last_base: Ints
    first_end: Ints
    is_ascending: Bools
    is_idempotent: Bools


class KnownOffers(NamedTuple):
    """
    The versions that brokers offered before a window, by the connections and brokers in it.

    Attributes:
        ranges: The distinct offers, by API key.
        connection: Of each exchange, the number of its connection here.
        broker: Of each exchange, the number of its broker here.
        by_connection: Of each connection, its last offer in `ranges`; NO_OFFER; UNKNOWN_OFFER.
        by_broker: Of each broker, likewise.
        packet_by_connection: Of each connection, the packet of that offer.
        packet_by_broker: Of each broker, likewise.
        is_paired: Of each exchange, whether its connection is complete, and pairs by ids alone.
    """

    ranges: list[Mapping[int, tuple[int, int]]]
    connection: Ints
    broker: Ints
    by_connection: Ints
    by_broker: Ints
    packet_by_connection: Ints
    packet_by_broker: Ints
    is_paired: Bools


class ScreenedRows(NamedTuple):
    """
    The exchanges of a window, for screens that test their columns.

    Attributes:
        table: The exchanges.
        is_complete: Whether the capture has all messages of the connection so far.
        has_login: Whether the connection had a SASL exchange or token before or in this window.
        is_in_order: Whether all responses of the connection in this window are in the order of
            their requests, also after those before the window.
        is_plain: Whether all record batches of the exchange are plain, if it has any; False in a
            request log, which has none.
        is_idempotent: Whether a plain batch of the exchange has a producer id.
        is_transactional: Whether a batch of the exchange belongs to a transaction.
        offers: The versions that brokers offered before.
    """

    table: Exchanges
    is_complete: Bools
    has_login: Bools
    is_in_order: Bools
    is_plain: Bools
    is_idempotent: Bools
    is_transactional: Bools
    offers: KnownOffers

    @property
    def has_request(self) -> Bools:
        """Whether the exchange has a request."""
        found: Bools = self.table.request.start != NONE
        return found

    @property
    def has_response(self) -> Bools:
        """Whether the exchange has a response."""
        found: Bools = self.table.response.start != NONE
        return found

    def is_of(self, api: int, first_version: int = 0) -> Bools:
        """Return whether an exchange is of an API, in some version or a later one."""
        found: Bools = (self.table.api_key == api) & (self.table.api_version >= first_version)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """
    The partitions in the requests, or in the responses, of a window, a row each.

    Attributes:
        row: The exchange, ascending.
        topic: Digest of the topic.
        topic_at: Address of the name or the id of the topic.
        topic_size: Its bytes.
        is_id: Whether it is an id.
        number: The number of the partition.
        digest: Digest of topic and number.
        topic_index: Index of the topic in the message.
        index: Index of the partition in the topic.
        error: The error code; -1 without one.
        offset: The requested offset, the base offset or the high watermark; -1 without one.
        stable: The last stable offset; -1 without one.
        start: The log start offset; -1 without one.
        records: Bytes of the records; -1 if they are null, or if the message has none.
        records_at: Address of the records; NONE without a byte.
        transaction_at: Address of the transactional id of the message.
        transaction_size: Its bytes; -1 if it is null, or if the message has none.
    """

    row: Ints
    topic: NDArray[np.uint64]
    topic_at: Ints
    topic_size: Ints
    is_id: Bools
    number: Ints
    digest: NDArray[np.uint64]
    topic_index: Ints
    index: Ints
    error: Ints
    offset: Ints
    stable: Ints
    start: Ints
    records: Ints
    records_at: Ints
    transaction_at: Ints
    transaction_size: Ints

    def count(self, exchanges: int, of: Bools | None = None) -> Ints:
        """Return how many partitions, or of those chosen, each exchange has."""
        rows = self.row if of is None else self.row[of]
        counts: Ints = np.bincount(rows, minlength=exchanges)
        return counts

    def all_of(self, exchanges: int, of: Bools) -> Bools:
        """Return for each exchange whether all its partitions are among the chosen."""
        found: Bools = self.count(exchanges, ~of) == 0
        return found


@dataclass(frozen=True, slots=True, eq=False)
class FetchSessions:
    """
    The sessions of the Fetch exchanges of a window; others have none.

    Attributes:
        session_id: Session id of the request; 0 without one.
        epoch: Session epoch of the request; FINAL_EPOCH without one.
        answered_id: Session id of the response; 0 without one.
        exists: Whether an exchange has a session, or begins one.
        is_known: Whether columns show all that such an exchange says, and its batches are plain;
            it forgets no partition, and has no error.
        is_replica: Whether a replica fetches, not a consumer; also without a session.
    """

    session_id: Ints
    epoch: Ints
    answered_id: Ints
    exists: Bools
    is_known: Bools
    is_replica: Bools

    @property
    def is_incremental(self) -> Bools:
        """Whether the request continues a session."""
        found: Bools = (self.epoch != INITIAL_EPOCH) & (self.epoch != FINAL_EPOCH)
        return found


class OfferColumns(NamedTuple):
    """
    The last offer before each exchange of a window.

    Attributes:
        is_known: Whether columns show it; the rest says nothing of others.
        is_before: Whether there is one, and the request was sent after it.
        has_version: Whether it has the version of the request.
    """

    is_known: Bools
    is_before: Bools
    has_version: Bools


class VersionColumns(NamedTuple):
    """
    What responses say of the version of each exchange of a window.

    Attributes:
        of_connection: The last offer on its connection.
        of_broker: The last offer of its broker.
        is_refused: Whether its response has the error UNSUPPORTED_VERSION.
    """

    of_connection: OfferColumns
    of_broker: OfferColumns
    is_refused: Bools


class ScreenedPartitions(NamedTuple):
    """
    The partitions in the Produce and Fetch messages of a window; other messages have none here.

    Attributes:
        rows: The exchanges.
        request: Those of requests.
        response: Those of responses.
        is_same: Of each exchange, whether both messages have the same partitions, each once.
        answer: Of each partition of a request, its row among those of responses; NONE unless the
            exchange has the same partitions in both.
        requested: Of each partition of a response, the offset in its request; NONE unless the
            exchange has the same partitions in both.
        topics: The number of topics with a name in each request.
        batches: The batches of each `records` field.
        sessions: The sessions of Fetch.
        versions: Of each exchange, what is offered.
    """

    rows: ScreenedRows
    request: Partitions
    response: Partitions
    is_same: Bools
    answer: Ints
    requested: Ints
    topics: Ints
    batches: FieldBatches
    sessions: FetchSessions
    versions: VersionColumns

    def __len__(self) -> int:
        return len(self.rows.table)

    def fields_of(self, side: Partitions) -> Ints:
        """Return the field of each partition in `batches`; -1 without records."""
        order = np.argsort(self.batches.start)
        start = np.append(self.batches.start[order], NONE)
        at = np.searchsorted(start[:-1], side.records_at)
        is_found = (side.records_at != NONE) & (start[at] == side.records_at)
        found: Ints = np.where(is_found, np.append(order, -1)[at], -1)
        return found
