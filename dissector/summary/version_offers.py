"""
What ApiVersions shows of a capture: the software of clients, the versions that brokers offer.

Frames that are equal but for their correlation ids are decoded once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.reading.group_keys import Software
from dissector.engine.tables.frames import escape_invalid_utf8
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.releases.kafka_releases import VersionRange

_FIRST_WITH_SOFTWARE = 3
"""The first version of ApiVersions with name and version of the client. Source: KIP-511."""

_CORRELATION_ID = slice(4, 8)
"""Its place in the header of a request; in that of a response it comes first."""

_MAX_CACHED = 10_000

_UNKNOWN: Software = (None, None)


@dataclass(slots=True)
class VersionOffers:
    """
    The ApiVersions exchanges of a capture, read window by window.

    Attributes:
        software: Connection -> name and version of the client's software, where it sent them.
        offers: Broker -> API key -> lowest and highest version, as it offered last.
    """

    capture: Capture
    software: dict[int, Software] = field(default_factory=dict)
    offers: dict[str, dict[int, VersionRange]] = field(default_factory=dict)
    _requests: dict[bytes, Software] = field(default_factory=dict)
    _responses: dict[tuple[int, bytes], dict[int, VersionRange]] = field(default_factory=dict)

    def software_of(self, connection: int) -> Software:
        """Return the software of a connection's client."""
        return self.software.get(connection, _UNKNOWN)

    def observe(self, window: Window) -> None:
        """Read the exchanges of a window; windows must be passed in order."""
        table, reading = window.exchanges, self.capture.reading
        assert reading is not None
        for row in np.flatnonzero(table.api_key == API_VERSIONS).tolist():
            exchange = reading.exchange(table, row, self.capture.names)
            request = table.frame(table.request, row)
            if request is not None and int(table.api_version[row]) >= _FIRST_WITH_SOFTWARE:
                self._learn_software(exchange, request)
            response = table.frame(table.response, row)
            if response is not None:
                self._learn_offer(exchange, int(table.api_version[row]), response)

    def _learn_software(self, exchange: Exchange, frame: bytes) -> None:
        key = frame[: _CORRELATION_ID.start] + frame[_CORRELATION_ID.stop :]
        found = self._requests.get(key)
        if found is None:
            found = _UNKNOWN
            body = exchange.request.body if exchange.request is not None else None
            if body is not None and "client_software_name" in body:
                names = body.client_software_name, body.client_software_version
                found = names[0] or None, names[1] or None
            found = escape_invalid_utf8(found[0]), escape_invalid_utf8(found[1])
            _bound(self._requests)[key] = found
        if found != _UNKNOWN:
            self.software[exchange.connection] = found

    def _learn_offer(self, exchange: Exchange, version: int, frame: bytes) -> None:
        key = version, frame[4:]
        found = self._responses.get(key)
        if found is None:
            body = exchange.response.body if exchange.response is not None else None
            apis = (body.get("api_keys") or ()) if body is not None else ()
            found = {each.api_key: (each.min_version, each.max_version) for each in apis}
            _bound(self._responses)[key] = found
        if found:
            self.offers[exchange.broker] = found


Key = TypeVar("Key")
Value = TypeVar("Value")


def _bound(cache: dict[Key, Value]) -> dict[Key, Value]:
    """Return a cache, emptied if it is full."""
    if len(cache) >= _MAX_CACHED:
        cache.clear()
    return cache
