"""Entries of logs to the frames of requests and responses."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from dissector.protocol.api import Kind
from dissector.protocol.apis import api, api_keys, api_name
from dissector.protocol.headers import (
    API_VERSIONS,
    PRODUCE,
    request_header_version,
    response_header_version,
)
from dissector.request_log.json_message import JsonMessage, JsonMessageError, JsonNotes
from dissector.request_log.line_problems import LineProblems
from dissector.request_log.log_lines import LogEntry
from dissector.request_log.synthetic_records import are_synthetic, records_of

_NS_PER_MS = 1e6
_CONNECTION = re.compile(r"\[?(.*?)\]?:(\d{1,5})-\[?(.*?)\]?:(\d{1,5})-\d.*")
_NOT_LETTERS = re.compile(r"[^a-z0-9]")
_MIN_INT32, _MAX_INT32 = -(2**31), 2**31 - 1
_MAX_INT16 = 2**15 - 1

REQUEST, RESPONSE = 0, 1


class LoggedMessage(NamedTuple):
    """
    A message of a log.

    Attributes:
        side: REQUEST or RESPONSE.
        time_ns: When it was complete, ns since the epoch.
        frame: Its bytes, header and body.
        is_cut: Whether the last byte stands for a body that the log does not have.
    """

    side: int
    time_ns: int
    frame: bytes
    is_cut: bool = False


class LoggedExchange(NamedTuple):
    """
    What one entry has of an exchange.

    Attributes:
        line: Its line.
        connection: The connection as the log names it.
        endpoints: Client and broker: address and port.
        messages: The request, the response or both.
        value: The entry.
        record_bytes: Sizes of records that it leaves out.
        begins_connection: Whether its connection has no exchange before it: a log may begin later,
            and brokers do not log logins.
    """

    line: int
    connection: str
    endpoints: tuple[tuple[str, int], tuple[str, int]]
    messages: list[LoggedMessage]
    value: dict[str, Any]
    record_bytes: list[int]
    begins_connection: bool


class _BadEntryError(Exception):
    """An entry without a message; the text says why."""


class LogMessages:
    """Makes frames of entries, and counts what is wrong with them."""

    def __init__(self, problems: LineProblems) -> None:
        self._problems = problems
        self._encoders: dict[tuple[int, int, Kind], tuple[JsonMessage, str]] = {}
        self._keys: dict[str, int] = {}
        self._sessions: dict[str, int] = {}

    def exchanges(self, entry: LogEntry) -> Iterator[LoggedExchange]:
        """Yield the exchange of an entry, if it has one."""
        try:
            if "requestHeader" in entry.value:
                yield self._exchange(entry)
            elif isinstance(entry.value.get("header"), dict):
                yield self._message(entry)
        except _BadEntryError as error:
            self._problems.add(str(error), entry.line)
        except JsonMessageError as error:
            self._problems.add(f"the message can't be encoded: {error}", entry.line)

    def _exchange(self, entry: LogEntry) -> LoggedExchange:
        """Return the exchange of a line of a request log."""
        value, notes = entry.value, JsonNotes()
        header = value["requestHeader"]
        if not isinstance(header, dict):
            raise _BadEntryError("requestHeader is not an object")
        key = _number(header, "requestApiKey", 0, _MAX_INT16)
        version = _number(header, "requestApiVersion", 0, _MAX_INT16)
        ids = key, version, _number(header, "correlationId", _MIN_INT32, _MAX_INT32)
        connection = value.get("connection")
        found = _CONNECTION.fullmatch(connection) if isinstance(connection, str) else None
        if found is None:
            raise _BadEntryError("no connection as address:port-address:port-number")
        total_ms = value.get("totalTimeMs")
        if not isinstance(total_ms, int | float) or not 0 <= total_ms < 1e9:
            raise _BadEntryError("no totalTimeMs")
        begin_ns = max(0, entry.time_ns - round(total_ms * _NS_PER_MS))
        head = _request_head(*ids, header.get("clientId"))
        frame, is_cut = self._frame(entry, ids, "request", head, value.get("request"), notes)
        messages = [LoggedMessage(REQUEST, begin_ns, frame, is_cut)]
        if isinstance(answer := value.get("response"), dict):
            frame, _ = self._frame(entry, ids, "response", _response_head(*ids), answer, notes)
            messages.append(LoggedMessage(RESPONSE, entry.time_ns, frame))
        broker, client = (found[1], int(found[2])), (found[3], int(found[4]))
        assert isinstance(connection, str)
        return LoggedExchange(
            *(entry.line, connection, (client, broker), messages, value, notes.record_bytes),
            begins_connection=key == API_VERSIONS,
        )

    def _message(self, entry: LogEntry) -> LoggedExchange:
        """Return the message of an object of a protocol log."""
        header, notes = entry.value["header"], JsonNotes()
        name = str(header.get("apiKey"))
        key = self._key(name)
        if key is None:
            raise _BadEntryError(f"unknown API {name[:40]}")
        version = _number(header, "apiVersion", 0, _MAX_INT16)
        ids = key, version, _number(header, "correlationId", _MIN_INT32, _MAX_INT32)
        is_request = header.get("type") == "REQUEST"
        kind: Kind = "request" if is_request else "response"
        head = _request_head(*ids, header.get("clientId")) if is_request else _response_head(*ids)
        frame, is_cut = self._frame(entry, ids, kind, head, entry.value.get("payload"), notes)
        side = REQUEST if is_request else RESPONSE
        message = LoggedMessage(side, entry.time_ns, frame, is_cut)
        number = self._sessions.setdefault(entry.session, len(self._sessions))
        client = f"192.0.2.{1 + number // 50_000 % 250}", 1024 + number % 50_000
        name = f"session {entry.session}"
        return LoggedExchange(
            *(entry.line, name, (client, ("198.51.100.1", 9092)), [message], {}),
            record_bytes=notes.record_bytes,
            begins_connection=key == API_VERSIONS,
        )

    def _key(self, name: str) -> int | None:
        if not self._keys:
            self._keys = {_letters(each): key for each, key in api_keys().items()}
        return self._keys.get(_letters(name))

    def _frame(
        self,
        entry: LogEntry,
        ids: tuple[int, int, int],
        kind: Kind,
        head: bytes,
        value: Any,
        notes: JsonNotes,
    ) -> tuple[bytes, bool]:
        """Return header and body, and whether the log does not have the body."""
        if not isinstance(value, dict):
            self._problems.add(f"the log leaves out the {kind}", entry.line)
            return head + b"\0", True
        body = self._encoder(entry, ids, kind).encode(value, notes)
        if notes.unknown:
            what = f"{api_name(ids[0])} v{ids[1]} {kind}"
            for name in dict.fromkeys(notes.unknown):
                self._problems.add(f"unknown field {name[:60]} of {what}: left out", entry.line)
            notes.unknown.clear()
        return head + body, False

    def _encoder(self, entry: LogEntry, ids: tuple[int, int, int], kind: Kind) -> JsonMessage:
        key, version, _ = ids
        found = self._encoders.get((key, version, kind))
        if found is None:
            declared = api(key)
            if declared is None:
                raise _BadEntryError(f"unknown API {key}: the message is lost")
            schema = declared.schema(kind)
            closest = schema.closest_version(version)
            if closest is None:
                what = f"{declared.name} v{version} is not known: the message is lost"
                raise _BadEntryError(what)
            doubt = ""
            if closest != version:
                if key == API_VERSIONS and kind == "response":
                    closest = 0  # KIP-511: the answer to an unknown version
                doubt = f"{declared.name} v{version} is not known: read as v{closest}"
            if key == PRODUCE and kind == "request" and are_synthetic():
                message = JsonMessage.of(schema, closest, partial(records_of, version=closest))
            else:
                message = JsonMessage.of(schema, closest)
            found = message, doubt
            self._encoders[key, version, kind] = found
        if found[1]:
            self._problems.add(found[1], entry.line)
        return found[0]


def _number(fields: dict[str, Any], name: str, low: int, high: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or not low <= value <= high:
        raise _BadEntryError(f"{name} is not a number of {low} to {high}")
    return int(value)


def _letters(name: str) -> str:
    return _NOT_LETTERS.sub("", name.lower())


def _request_head(key: int, version: int, correlation_id: int, client_id: object) -> bytes:
    form = request_header_version(key, version)
    head = struct.pack(">hhi", key, version, correlation_id)
    if form == 0:
        return head
    is_text = isinstance(client_id, str)
    text = str(client_id).encode("utf-8", "replace")[:_MAX_INT16] if is_text else None
    size = -1 if text is None else len(text)
    return head + struct.pack(">h", size) + (text or b"") + (b"\0" if form == 2 else b"")


def _response_head(key: int, version: int, correlation_id: int) -> bytes:
    flexible = response_header_version(key, version) == 1
    return struct.pack(">i", correlation_id) + (b"\0" if flexible else b"")
