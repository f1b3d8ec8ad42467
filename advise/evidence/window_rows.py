"""The exchanges of a window, as all totals need them: clients, times and packets of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advise.evidence.interned_names import InternedNames
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.summary.group_keys import host_of

if TYPE_CHECKING:
    from dissector.engine.exchanges.fact_columns import ExchangeSummaries
    from dissector.engine.reading.capture import Reading

Mask = NDArray[np.bool_]


class ClientName(NamedTuple):
    """
    A client: all connections of a client id from one address.

    Attributes:
        client_id: Client id; empty without one.
        host: Address.
    """

    client_id: str
    host: str


@dataclass(slots=True)
class KnownNames:
    """
    The names of a capture so far, by number.

    Attributes:
        clients: Clients.
        brokers: Addresses of brokers, with their ports.
        topics: Topics, by name or id.
        groups: Groups.
        errors: Names of errors.
        transactions: Transactional ids.
    """

    clients: InternedNames[ClientName]
    brokers: InternedNames[str]
    topics: InternedNames[object]
    groups: InternedNames[str]
    errors: InternedNames[str]
    transactions: InternedNames[str]

    @classmethod
    def new(cls) -> KnownNames:
        """Return empty ones."""
        others = ClientName("(others)", "(others)")
        texts = [InternedNames("(others)") for _ in range(4)]
        brokers, groups, errors, transactions = texts
        topics: InternedNames[object] = InternedNames("(others)")
        return cls(InternedNames(others), brokers, topics, groups, errors, transactions)


class WindowRows:
    """
    The exchanges of a window with a request, their clients and moments.

    Attributes:
        table: The exchanges.
        known: Their summaries.
        names: The names of the capture.
        client: Number of the client of each exchange.
        broker: Number of the broker.
        time_ns: Time of the request; of the response where there is none.
        packet: Packet of the same message, from 1.
        failed: Whether the response has an error.
    """

    def __init__(
        self, reading: Reading, table: Exchanges, known: ExchangeSummaries, names: KnownNames
    ) -> None:
        self.table, self.known, self.names = table, known, names
        request, response = table.request, table.response
        self.time_ns = np.where(request.time_ns == NONE, response.time_ns, request.time_ns)
        self.packet = np.where(request.packet == NONE, response.packet, request.packet) + 1
        self.failed: Mask = known.errors != 0
        codes, found = distinct(table.connection * 2 + table.client)
        sides = (found & 1).tolist()
        ends = list(zip(reading.endpoints.of_all(found >> 1), sides, strict=True))
        hosts = [host_of(both[side]) for both, side in ends]
        self.broker = names.brokers.numbers(both[1 - side] for both, side in ends)[codes]
        pairs, kinds = distinct(codes * max(len(known.client_ids), 1) + known.client_id)
        count = max(len(known.client_ids), 1)
        clients = (
            ClientName(known.client_ids[kind % count] or "", hosts[kind // count])
            for kind in kinds.tolist()
        )
        self.client = names.clients.numbers(clients)[pairs]

    def of(self, rows: Ints, **more: Ints) -> dict[str, Ints]:
        """Return client, connection and moments of some exchanges, with more columns."""
        time_ns, packet = self.time_ns[rows], self.packet[rows]
        return {
            "client": self.client[rows],
            "connection": self.table.connection[rows],
            "first_ns": time_ns,
            "last_ns": time_ns,
            "first_packet": packet,
            "last_packet": packet,
            **more,
        }

    def with_errors(self, wanted: frozenset[str], rows: Ints) -> Ints:
        """Return those of some exchanges that have one of the errors."""
        lists = self.known.error_lists
        codes = [code for code, names in enumerate(lists) if wanted & {*names}]
        found: Ints = rows[np.isin(self.known.errors[rows], codes)]
        return found
