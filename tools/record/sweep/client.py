"""A client that sends single requests at any version, and checks all responses."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from construct import Container

from dissector.protocol.apis import api, api_name
from dissector.protocol.expected_response import expects_response
from dissector.protocol.headers import RequestHeader, request_header_version
from dissector.protocol.messages import Message, decode_response
from dissector.protocol.records_fields import record_problems
from tools.record.scenario import until
from tools.record.sweep.bodies import body_of, errors_of, unknown_tags

T = TypeVar("T")

CLIENT_ID = "kafkashark-sweep"
SOFTWARE = {"client_software_name": CLIENT_ID, "client_software_version": "1"}
"""Software fields of ApiVersions."""

PATIENCE_S = 15.0
_POLL_S = 0.1
API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36

NOT_YET = {
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR",
    "CONCURRENT_TRANSACTIONS",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER",
    "DELEGATION_TOKEN_NOT_FOUND",
}
"""Transient errors of a broker."""


class DisagreementError(Exception):
    """Bytes from Kafka do not match our declarations."""


class SweepClient:
    """
    A client of one listener, with a connection for each API.

    If the broker closes a connection, or does not answer, only that API is affected; the request is
    listed in `unanswered`.

    Attributes:
        offered: Versions in the listener's ApiVersions response, by API key.
        answered: Answered (API key, version) pairs.
        unanswered: Other requests sent, and their outcome.
    """

    def __init__(self, address: str, login: tuple[str, str] | None = None) -> None:
        """Request the versions of a listener; `login` is name and password for PLAIN."""
        host, _, port = address.rpartition(":")
        self._place = (host, int(port))
        self._login = login
        self._open: dict[int, socket.socket] = {}
        self._correlation_id = 0
        self._wrong: list[str] = []
        self.offered: dict[int, range] = {API_VERSIONS: range(4)}
        self.answered: set[tuple[int, int]] = set()
        self.unanswered: dict[tuple[int, int], str] = {}
        hello = self.request(API_VERSIONS, 3, **SOFTWARE)
        assert hello is not None, f"nobody answers at {address}"
        self.offered = {
            each.api_key: range(each.min_version, each.max_version + 1) for each in hello.api_keys
        }

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Close the connections; raise mismatches, report unanswered requests."""
        self.close()
        for (key, version), what in sorted(self.unanswered.items()):
            if (key, version) not in self.answered:
                print(f"  {api_name(key)} v{version}: {what}", file=sys.stderr)
        if self._wrong:
            raise DisagreementError("\n".join(self._wrong))

    def close(self) -> None:
        """Close the connections."""
        for connection in self._open.values():
            connection.close()

    def versions(self, key: int) -> range:
        """Return the offered and declared versions of an API, if any."""
        found = api(key)
        offered = self.offered.get(key, range(0))
        if found is None:
            return range(0)
        known = found.request.versions
        return range(max(offered.start, known.low), min(offered.stop, known.high + 1))

    def rounds(self, *keys: int) -> range:
        """Return round numbers with which `request_next` covers all versions of these APIs."""
        return range(max(len(self.versions(key)) for key in keys))

    def request_next(self, key: int, number: int, /, **fields: Any) -> Container | None:
        """Send a request at the API's version of a round; the newest one after the last."""
        versions = self.versions(key)
        if not versions:
            return None
        return self.request(key, versions[min(number, len(versions) - 1)], **fields)

    def each(self, key: int, /, **fields: Any) -> Iterator[tuple[int, Container | None]]:
        """Send a request at each version; yield the versions with responses."""
        for version in self.versions(key):
            yield version, self.request(key, version, **fields)

    def every(self, key: int, /, **fields: Any) -> None:
        """Send a request at each version, with the same fields."""
        for _ in self.each(key, **fields):
            pass

    def newest(self, key: int, /, **fields: Any) -> Container | None:
        """Send a request at the newest version."""
        return self.request_next(key, sys.maxsize, **fields)

    def rest(self, keys: Iterable[int]) -> None:
        """Send the remaining offered versions of these APIs, with empty fields."""
        for key in keys:
            for version in self.versions(key):
                if (key, version) not in self.answered and (key, version) not in self.unanswered:
                    self.request(key, version)

    def request(self, key: int, version: int, /, **fields: Any) -> Container | None:
        """
        Send a request and wait for its response; retry while the broker is not ready.

        Args:
            key: API key, offered or not.
            version: A declared version.
            fields: Fields of any version; others are omitted, missing ones are zero.

        Returns:
            The body of the response; None without one.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            message = self._exchange(key, version, fields)
            if message is None or message.body is None:
                return None
            if not errors_of(message) & NOT_YET or time.monotonic() > deadline:
                return message.body
            time.sleep(_POLL_S)

    def say_new(self, key: int, version: int) -> Container | None:
        """Send a request at a version above all known, in the layout of the newest offered one."""
        request = self._request(key, self.versions(key)[-1], SOFTWARE)
        answer = self._send(key, version, request[:2] + version.to_bytes(2, "big") + request[4:])
        if answer is None:
            return None
        message = decode_response(answer, key, version)
        self._check(message, 0)
        return message.body

    def token(self, key: int, data: bytes) -> bytes | None:
        """Send raw bytes, as SASL does after SaslHandshake v0, on the connection of an API."""
        return self._send(key, 0, data)

    @contextlib.contextmanager
    def together(self, *keys: int) -> Iterator[None]:
        """Use a separate shared connection for some APIs."""
        for key in keys:
            self._forget(key)
        connection = self._connect()
        self._open |= dict.fromkeys(keys, connection)
        try:
            yield
        finally:
            for key in keys:
                self._forget(key)

    def _forget(self, key: int) -> None:
        if key in self._open:
            self._open.pop(key).close()

    def _exchange(self, key: int, version: int, fields: Mapping[str, Any]) -> Message | None:
        frame = self._request(key, version, fields)
        answer = self._send(key, version, frame)
        if answer is None:
            return None
        message = decode_response(answer, key, version)
        self._check(message, version)
        return message

    def _request(self, key: int, version: int, fields: Mapping[str, Any]) -> bytes:
        found = api(key)
        assert found is not None
        self._correlation_id += 1
        header = {
            "request_api_key": key,
            "request_api_version": version,
            "correlation_id": self._correlation_id,
            "client_id": CLIENT_ID,
        }
        head = RequestHeader.codec(request_header_version(key, version)).build(header)
        return head + body_of(found.request, version, fields)

    def _send(self, key: int, version: int, frame: bytes) -> bytes | None:
        try:
            if key not in self._open:
                self._open[key] = self._connect()
            connection = self._open[key]
            connection.sendall(len(frame).to_bytes(4, "big") + frame)
            if not expects_response(frame):
                return None
            answer = _read(connection, int.from_bytes(_read(connection, 4), "big"))
        except TimeoutError:
            self.unanswered[key, version] = f"no answer in {PATIENCE_S:.0f} s"
        except OSError:
            self.unanswered[key, version] = "the broker closed the connection"
        else:
            self.answered.add((key, version))
            return answer
        self._forget(key)
        return None

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._place, PATIENCE_S)
        try:
            self._log_in(connection)
        except OSError:
            connection.close()
            raise
        return connection

    def _log_in(self, connection: socket.socket) -> None:
        if self._login is None:
            return
        name, password = self._login
        token = f"\0{name}\0{password}".encode()
        for key, fields in (
            (SASL_HANDSHAKE, {"mechanism": "PLAIN"}),
            (SASL_AUTHENTICATE, {"auth_bytes": token}),
        ):
            frame = self._request(key, 1, fields)
            connection.sendall(len(frame).to_bytes(4, "big") + frame)
            _read(connection, int.from_bytes(_read(connection, 4), "big"))

    def _check(self, message: Message, version: int) -> None:
        """Check that a response is decoded completely, declared, and encoded unchanged."""
        name = f"{message.api} v{version} response"
        self._wrong += [f"{name}: {each}" for each in message.problems + record_problems(message)]
        schema = message.schema
        if message.body is None or schema is None or message.problems:
            return
        body = message.frame[message.body_start :]
        if schema.codec(message.api_version or 0).build(message.body) != body:
            self._wrong.append(f"{name}: is written differently than read: {body.hex()}")
        unknown = list(unknown_tags(message.body))
        if unknown:
            self._wrong.append(f"{name}: has tagged fields that are not declared: {unknown}")


def patiently(what: str, attempt: Callable[[], T | None]) -> T:
    """Like `until`, with a pause between attempts, as all of them are captured."""

    def paced() -> T | None:
        result = attempt()
        if not result:
            time.sleep(_POLL_S)
        return result

    return until(what, paced)


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data
