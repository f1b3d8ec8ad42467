"""
Produce and Fetch as spans of OpenTelemetry, with spans of applications as parents.

A record with a `traceparent` header belongs to a trace: its span has the trace's id, and the span
in the header as parent. Records of an exchange with the same header share a span. Other records get
a new trace, with an id derived from the exchange, so that it is reproducible.

Source: W3C Trace Context; OpenTelemetry semantic conventions for messaging and Kafka, 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_records import record_rows
from timeline.events.words import client_name

PRODUCE, FETCH = 0, 1
PRODUCER, CONSUMER = 4, 5
"""Kinds of spans."""

MAX_CONTEXTS = 256
"""Maximum number of parents per exchange; records with further ones share a span without parent."""

_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?=-|$)")
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class Context(NamedTuple):
    """A parent: trace and span as hexadecimal digits, and trace flags."""

    trace_id: str
    span_id: str
    flags: int


class Span(NamedTuple):
    """
    An OpenTelemetry span.

    Attributes:
        service: Client id and host of the client.
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_id: 16 hexadecimal digits; empty without a parent.
        flags: Trace flags.
        name: Operation and topic.
        kind: `PRODUCER` or `CONSUMER`.
        begin_ns: Completion time of the request.
        end_ns: Completion time of the response; without one, of the request.
        attributes: Attributes named by the semantic conventions.
        error: The first error in the response; empty without one.
    """

    service: str
    trace_id: str
    span_id: str
    parent_id: str
    flags: int
    name: str
    kind: int
    begin_ns: int
    end_ns: int
    attributes: dict[str, str | int]
    error: str


def messaging_spans(exchange: Exchange, mask: Callable[[str], str]) -> Iterator[Span]:
    """Yield the spans of an exchange, one per topic and parent of records."""
    begin_ns = exchange.request_time_ns
    if exchange.api_key not in (PRODUCE, FETCH) or begin_ns is None:
        return
    groups: dict[tuple[Context | None, str], list[dict[str, Any]]] = {}
    contexts: set[Context] = set()
    for row in record_rows(exchange):
        if row["control"]:
            continue
        context = _context(row["headers"])
        if context is not None and len(contexts | {context}) > MAX_CONTEXTS:
            context = None
        if context is not None:
            contexts.add(context)
        key = context, row["topic"] or row["topic_id"] or ""
        groups.setdefault(key, []).append(_facts(row))
    errors = exchange.errors
    for (context, topic), records in groups.items():
        is_send = exchange.api_key == PRODUCE
        own = _digest(exchange, topic, context)
        yield Span(
            mask(client_name(exchange.client_id, exchange.client)),
            context.trace_id if context else _digest(exchange, "", None) + own,
            own,
            context.span_id if context else "",
            context.flags if context else 0,
            f"{'send' if is_send else 'poll'} {mask(topic)}",
            PRODUCER if is_send else CONSUMER,
            begin_ns,
            max(begin_ns, exchange.response_time_ns or 0),
            _attributes(exchange, topic, records, mask),
            errors[0] if errors else "",
        )


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record needed for spans, without its bytes."""
    return {name: row[name] for name in ("partition", "offset")}


def _context(headers: list[dict[str, Any]]) -> Context | None:
    """Return the valid trace context in record headers; None without one."""
    for header in headers:
        value = header["value"]
        if header["key"] == "traceparent" and isinstance(value, bytes):
            found = _TRACEPARENT.match(value)
            if found is None:
                return None
            trace_id, span_id, flags = (each.decode() for each in found.groups())
            if trace_id == _NO_TRACE or span_id == _NO_SPAN:
                return None
            return Context(trace_id, span_id, int(flags, 16))
    return None


def _digest(exchange: Exchange, topic: str, context: Context | None) -> str:
    """Return an id of 16 hexadecimal digits, derived from an exchange and a part of it."""
    ends = exchange.client, exchange.broker, exchange.request_time_ns, exchange.request_packet
    parts = (*ends, exchange.correlation_id, topic, context)
    return blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _attributes(
    exchange: Exchange, topic: str, records: list[dict[str, Any]], mask: Callable[[str], str]
) -> dict[str, str | int]:
    is_send = exchange.api_key == PRODUCE
    host, _, port = exchange.broker.rpartition(":")
    found: dict[str, str | int] = {
        "messaging.system": "kafka",
        "messaging.operation.name": "send" if is_send else "poll",
        "messaging.operation.type": "send" if is_send else "receive",
        "messaging.destination.name": mask(topic),
        "messaging.batch.message_count": len(records),
        "server.address": host.strip("[]"),
        "server.port": int(port),
        "network.transport": "tcp",
        "kafkashark.capture": exchange.capture,
        "kafkashark.connection": exchange.connection,
        "kafkashark.correlation_id": exchange.correlation_id or 0,
        "kafkashark.api_version": exchange.api_version or 0,
        "kafkashark.request_packet": exchange.request_packet or 0,
        "kafkashark.status": exchange.status,
    }
    if exchange.client_id:
        found["messaging.client.id"] = mask(exchange.client_id)
    if exchange.response_packet is not None:
        found["kafkashark.response_packet"] = exchange.response_packet
    partitions = {each["partition"] for each in records}
    if len(partitions) == 1:
        found["messaging.destination.partition.id"] = str(partitions.pop())
    if len(records) == 1 and records[0]["offset"] is not None:
        found["messaging.kafka.offset"] = records[0]["offset"]
    if exchange.errors:
        found["error.type"] = exchange.errors[0]
    return found
