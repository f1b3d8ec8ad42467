"""Exchanges for trackers: reliable bodies, times, evidence; from columns as far as these go."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from dissector.engine.exchanges.exchange import TOKEN
from dissector.engine.reading.spoken import mismatch
from dissector.engine.tables.exchange_table import NONE, STATUS
from dissector.protocol.apis import api_name
from dissector.protocol.context import using
from dissector.protocol.error_codes import error_name
from timeline.events.event import Evidence
from timeline.events.plain_data import PlainData, PlainExchange
from timeline.events.reliable_bodies import ReliableBodies, reliable_body

if TYPE_CHECKING:
    import numpy as np

    from dissector.engine.exchanges.exchange import Exchange
    from dissector.engine.exchanges.fact_columns import ExchangeSummaries
    from dissector.engine.facts.topic_table import TopicNames
    from dissector.engine.reading.reader import Reading
    from dissector.engine.tables.exchange_table import Exchanges
    from dissector.protocol.api import Kind
    from timeline.events.waits import Waits


class Mark(NamedTuple):
    """
    The part of an exchange that states retain, without bytes of its window.

    Attributes:
        time_ns: As in `ObservedExchange`.
        end_ns: As in `ObservedExchange`.
        broker: `address:port` of the broker.
        evidence: The exchange.
    """

    time_ns: int
    end_ns: int
    broker: str
    evidence: Evidence


class ObservedWindow(NamedTuple):
    """
    The exchanges of a window, as trackers observe them.

    Attributes:
        reading: The pass over the capture.
        table: The exchanges.
        names: Known names of topic ids.
        summaries: Their client ids, errors and topics.
        bodies: Decodes their messages.
        waits: Those of unanswered requests.
        plain: Those whose columns suffice.
        number_of: Returns the number of a connection by its position in the reading.
        passes: Display filter; None lets all exchanges pass.
    """

    reading: Reading
    table: Exchanges
    names: TopicNames
    summaries: ExchangeSummaries
    bodies: ReliableBodies
    waits: Waits
    plain: PlainData
    number_of: Callable[[int], int]
    passes: Callable[[Exchange], bool] | None

    def at(self, row: int) -> ObservedExchange:
        """Return the exchange of a row."""
        return ObservedExchange(self, row)

    def exchange(self, row: int) -> Exchange:
        """Return the whole exchange of a row."""
        return self.reading.exchange(self.table, row, self.names, self.summaries)


class ObservedExchange:
    """
    An exchange at the time of its end.

    Attributes:
        connection: Number of the connection, from 0.
        api_key: Key of the API; None for orphans and SASL tokens.
        client: `address:port` of the client.
        broker: `address:port` of the broker.
        time_ns: Completion time of the request; for orphans, of the response.
        end_ns: Completion time of the response; without one, of the request.
        wait: The wait for an expected response that is not in the capture; None if there is one.
        ended: End of the connection before that response: `fin`, `rst` or `reused`.
        mismatch: How the protocols of client and server differ; empty if they do not.
    """

    def __init__(self, window: ObservedWindow, row: int) -> None:
        self._window, self._row = window, row
        reading, table = window.reading, window.table
        position = int(table.connection[row])
        self.connection = window.number_of(position)
        self.client, self.broker = reading.client_and_broker(position, int(table.client[row]))
        self.api_key = _known(table.api_key[row])
        requested_ns, responded_ns = (
            _known(table.request.time_ns[row]),
            _known(table.response.time_ns[row]),
        )
        self.time_ns: int = requested_ns if requested_ns is not None else responded_ns or 0
        self.end_ns: int = responded_ns if responded_ns is not None else self.time_ns
        self.wait = window.waits.of(row)
        self.ended = "" if self.wait is None else self.wait.ended
        self.mismatch = ""
        if self.ended:
            self.mismatch = mismatch(reading, reading.streams.connections[position])

    @property
    def plain(self) -> PlainExchange | None:
        """What the exchange says if it is plain, which its bodies need not be decoded for."""
        return self._window.plain.of(self._row)

    @cached_property
    def exchange(self) -> Exchange:
        """The exchange with all that the capture has of it."""
        return self._window.exchange(self._row)

    @property
    def status(self) -> str:
        """One of `STATUS`, as `answered`."""
        return STATUS[self._window.table.status[self._row]]

    @property
    def api(self) -> str | None:
        """Name of the API."""
        if self._window.table.token[self._row]:
            return TOKEN
        if self.api_key is None:
            return None
        with using(self._window.reading.options.schemas):
            return api_name(self.api_key)

    @property
    def api_version(self) -> int | None:
        """Version of the request."""
        return _known(self._window.table.api_version[self._row])

    @property
    def client_host(self) -> str:
        """Host of the client, without the port."""
        return self.client.rpartition(":")[0]

    @property
    def client_id(self) -> str:
        """Client id of the request; empty without one."""
        return self._client_id or ""

    @property
    def _client_id(self) -> str | None:
        summaries = self._window.summaries
        return summaries.client_ids[int(summaries.client_id[self._row])]

    @cached_property
    def request(self) -> Any:
        """Body of the request; None if missing or unreliable."""
        return self._body("request")

    @cached_property
    def response(self) -> Any:
        """Body of the response; None if missing or unreliable."""
        return self._body("response")

    def _body(self, kind: Kind) -> Any:
        window, row = self._window, self._row
        if not window.bodies.has_whole(window.table, row, kind):
            return reliable_body(getattr(self.exchange, kind))
        return window.bodies.read(window.table, row, kind)

    @cached_property
    def error(self) -> str:
        """Name of the top-level error in the response; empty without one."""
        code = 0 if self.response is None else self.response.get("error_code") or 0
        return error_name(code) if code else ""

    @cached_property
    def evidence(self) -> Evidence:
        """The exchange as evidence."""
        window, row = self._window, self._row
        requested, responded = (
            _known(frames.packet[row]) for frames in (window.table.request, window.table.response)
        )
        packet = responded if requested is None else requested
        return Evidence(
            window.reading.source.file_of(NONE if packet is None else packet),
            self.connection,
            self.client,
            self._client_id,
            self.broker,
            None if requested is None else requested + 1,
            None if responded is None else responded + 1,
            _known(window.table.correlation_id[row]),
            self.api,
            window.passes is None or window.passes(self.exchange),
        )

    @property
    def mark(self) -> Mark:
        """The part for retention in states."""
        return Mark(self.time_ns, self.end_ns, self.broker, self.evidence)

    def known_topic(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id; None if the capture does not define it."""
        return self._window.names.find_name(topic_id)

    def topic(self, body: Any, field: str = "name") -> str:
        """Return the topic name for a part of a body with a topic name or id."""
        name = body.get(field)
        if name:
            return str(name)
        topic_id: UUID | None = body.get("topic_id")
        return (topic_id and self.known_topic(topic_id)) or str(topic_id or "")


def _known(value: np.int64) -> int | None:
    return None if value == NONE else int(value)


def is_follower(request: Any) -> bool:
    """Return whether a Fetch request is that of a broker, which replicates."""
    replica = request.get("replica_state")
    replica_id = request.get("replica_id", -1) if replica is None else replica.replica_id
    return replica_id is not None and replica_id >= 0
