"""
The evidence of ApiVersions in a capture: the software of clients, the versions that brokers offer.

Requests have the software from version 3 on (KIP-511).

Frames that are equal but for their correlation ids are decoded once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.releases.kafka_releases import VersionRange
from dissector.protocol.undeclared_nulls import readable_body
from dissector.summary.group_keys import Software, host_of

_CORRELATION_ID = slice(4, 8)
"""Position in the header of a request; a response begins with it."""

_MAX_CACHED, _MAX_CACHED_BYTES = 10_000, 4_096
"""Maximum number and size of cached frames."""

_UNKNOWN: Software = (None, None)

Client: TypeAlias = tuple[str | None, str]
"""Client id and address."""

_Request: TypeAlias = tuple[str | None, Software]
"""Client id and software."""


@dataclass(slots=True)
class VersionOffers:
    """
    The ApiVersions exchanges of a capture, read window by window.

    Attributes:
        software: Connection -> name and version of the client's software, if sent.
        offers: Broker -> API key -> lowest and highest version, as it offered last.
        requesters: Client id and address of clients that request versions.
    """

    capture: Capture
    software: dict[int, Software] = field(default_factory=dict)
    offers: dict[str, dict[int, VersionRange]] = field(default_factory=dict)
    requesters: set[Client] = field(default_factory=set)
    _requests: dict[bytes, _Request] = field(default_factory=dict)
    _responses: dict[bytes, dict[int, VersionRange]] = field(default_factory=dict)

    def software_of(self, connection: int) -> Software:
        """Return the software of a connection's client."""
        return self.software.get(connection, _UNKNOWN)

    def observe(self, window: Window) -> None:
        """Read the exchanges of a window; windows must be passed in order."""
        table, reading = window.exchanges, self.capture.reading
        assert reading is not None
        rows = np.flatnonzero(table.api_key == API_VERSIONS)
        codes, found = distinct(table.connection[rows] * 2 + table.client[rows])
        ends = [
            (both[side], both[1 - side])
            for both, side in zip(
                reading.endpoints.of_all(found >> 1), (found & 1).tolist(), strict=True
            )
        ]
        pairs = zip(rows.tolist(), codes.tolist(), strict=True)
        places = [(row, *ends[code]) for row, code in pairs]
        for row, client, _ in places:
            self._learn_client(table, row, host_of(client))
        learned = set[str]()
        # What a broker offered last holds: earlier ones of the window are not decoded.
        for row, _, broker in reversed(places):
            if broker not in learned and (offer := self._offer(table, row)):
                learned.add(broker)
                self.offers[broker] = offer

    def _learn_client(self, table: Exchanges, row: int, host: str) -> None:
        frame = table.frame(table.request, row)
        if frame is None:
            return
        key = frame[: _CORRELATION_ID.start] + frame[_CORRELATION_ID.stop :]
        found = self._requests.get(key)
        if found is None:
            found = _request(self._exchange(table, row))
            _remember(self._requests, key, found)
        client_id, software = found
        self.requesters.add((client_id, host))
        if software != _UNKNOWN:
            self.software[int(table.connection[row])] = software

    def _offer(self, table: Exchanges, row: int) -> dict[int, VersionRange]:
        """Return the versions that a response offers, if any."""
        frame = table.frame(table.response, row)
        if frame is None:
            return {}
        key = int(table.api_version[row]).to_bytes(8, "big", signed=True) + frame[4:]
        found = self._responses.get(key)
        if found is None:
            body = readable_body(self._exchange(table, row).response)
            apis = (body.get("api_keys") or ()) if body is not None else ()
            found = {each.api_key: (each.min_version, each.max_version) for each in apis}
            _remember(self._responses, key, found)
        return found

    def _exchange(self, table: Exchanges, row: int) -> Exchange:
        assert self.capture.reading is not None
        return self.capture.reading.exchange(table, row, self.capture.names)


def _request(exchange: Exchange) -> _Request:
    """Return client id and software in a request."""
    body = readable_body(exchange.request)
    software = _UNKNOWN
    if body is not None and "client_software_name" in body:
        name, version = body.client_software_name, body.client_software_version
        software = escape_invalid_utf8(name) or None, escape_invalid_utf8(version) or None
    return escape_invalid_utf8(exchange.client_id), software


Value = TypeVar("Value")


def _remember(cache: dict[bytes, Value], frame: bytes, value: Value) -> None:
    """Add the value of a frame to a cache of bounded size."""
    if len(frame) <= _MAX_CACHED_BYTES:
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        cache[frame] = value
