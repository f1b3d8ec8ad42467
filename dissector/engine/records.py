"""The records of a capture as flat rows: what the `records` command and `Capture.records` give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.engine.exchange import Exchange
from dissector.protocol.carried import carried
from dissector.protocol.facts import NO_ID
from dissector.protocol.records.rows import Row, iter_records

COLUMNS = (
    "connection",
    "correlation_id",
    "api",
    "time_ns",
    "topic",
    "topic_id",
    "partition",
    *Row._fields,
)
"""The columns of `records`, in order."""


def record_rows(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """
    Yield a row for each record in the messages of an exchange, in wire order.

    The columns are those of the `records` command; keys, values and header values are bytes.
    """
    for message in exchange.messages:
        times = exchange.request_time_ns, exchange.response_time_ns
        for field in carried(message):
            topic, topic_id = field.topic, field.topic_id
            if topic_id == NO_ID:
                topic_id = None
            if not topic and topic_id is not None:
                topic = exchange.known_topic(topic_id)
            about: dict[str, Any] = {
                "connection": exchange.connection,
                "correlation_id": message.correlation_id,
                "api": exchange.api,
                "time_ns": times[message.kind == "response"],
                "topic": topic,
                "topic_id": None if topic_id is None else str(topic_id),
                "partition": field.partition,
            }
            for record in iter_records(field.batches):
                row: dict[str, Any] = about | record._asdict()
                row["headers"] = [{"key": k, "value": v} for k, v in record.headers]
                yield row
