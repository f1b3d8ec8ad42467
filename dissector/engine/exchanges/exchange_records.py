"""The records of a capture as flat rows: what the `records` command and `Capture.records` give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.records.produce_results import MAX_OFFSET
from dissector.protocol.carried import records_fields
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records.field import UnreadBatch
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
    "error",
)
"""The columns of `records`, in order."""


def record_rows(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """
    Yield a row for each record in the messages of an exchange, in wire order.

    The columns are those of the `records` command; keys, values and header values are bytes. What
    was produced has the offsets and the error that the response tells, or none where it does not.
    """
    answers = _produce_answers(exchange)
    for message in exchange.messages:
        times = exchange.request_time_ns, exchange.response_time_ns
        asks = message.kind == "request"
        for field in records_fields(message):
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
            where = field.topic, field.topic_id, field.partition
            base, error = answers.get(where, (None, None)) if asks else (None, None)
            if any(isinstance(batch, UnreadBatch) for batch in field.batches):
                base = None  # nobody knows how many records are in it
            for number, record in enumerate(iter_records(field.batches)):
                row: dict[str, Any] = about | record._asdict()
                row["headers"] = [{"key": k, "value": v} for k, v in record.headers]
                row["error"] = error
                if asks:
                    row["offset"] = None if base is None else base + number
                yield row


def _produce_answers(
    exchange: Exchange,
) -> dict[tuple[str | None, UUID | None, int], tuple[int | None, str]]:
    """
    Return what a response says of each topic and partition: the first offset, and the error.

    Source: Kafka, ProduceResponse.json.
    """
    response = exchange.response
    if exchange.api_key != PRODUCE or response is None or response.body is None:
        return {}
    answers: dict[tuple[str | None, UUID | None, int], tuple[int | None, str]] = {}
    for topic in response.body["responses"] or ():
        for each in topic["partition_responses"] or ():
            base, code = each["base_offset"], each["error_code"]
            where = topic.get("name"), topic.get("topic_id"), each["index"]
            is_written = code == 0 and 0 <= base < MAX_OFFSET
            answers.setdefault(where, (base if is_written else None, error_name(code)))
    return answers
