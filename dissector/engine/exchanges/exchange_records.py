"""The records of a capture as flat rows, for the `records` command and `Capture.records`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from dissector.column_catalogue import RECORDS, names
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.records.produce_results import MAX_OFFSET
from dissector.engine.tables.column_types import Coded, Headers, Integers, Slices
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records.field import UnreadBatch
from dissector.protocol.records.rows import iter_records
from dissector.protocol.records_fields import records_fields

_KIND_OF_TYPE: dict[str, type[Any]] = {
    **dict.fromkeys(("int", "int32", "int16", "int8"), Integers),
    "bytes": Slices,
    "headers": Headers,
}

COLUMNS = names(RECORDS)
"""The columns of `records`, in order."""

KINDS = {each.name: _KIND_OF_TYPE.get(each.type, Coded) for each in RECORDS}
"""The kinds of these columns, as `record_windows` makes them in bulk."""


def record_rows(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """
    Yield a row for each record in the messages of an exchange, in wire order.

    The columns of the `records` command; keys, values and header values are bytes. Produced records
    have the offsets and the error of the response, or null without one.
    """
    results = _produce_results(exchange)
    for message in exchange.messages:
        times = exchange.request_time_ns, exchange.response_time_ns
        packets = exchange.request_packet, exchange.response_packet
        is_request = message.kind == "request"
        acks = message.body.get("acks") if is_request and message.body else None
        for field in records_fields(message):
            topic, topic_id = field.topic, field.topic_id
            if topic_id == NO_ID:
                topic_id = None
            if not topic and topic_id is not None:
                topic = exchange.known_topic(topic_id)
            common: dict[str, Any] = {
                "connection": exchange.connection,
                "correlation_id": message.correlation_id,
                "api": exchange.api,
                "client_id": exchange.client_id,
                "packet": packets[message.kind == "response"],
                "time_ns": times[message.kind == "response"],
                "topic": topic,
                "topic_id": None if topic_id is None else str(topic_id),
                "partition": field.partition,
            }
            place = field.topic, field.topic_id, field.partition
            base_offset, error = results.get(place, (None, None)) if is_request else (None, None)
            if any(isinstance(batch, UnreadBatch) for batch in field.batches):
                base_offset = None  # the number of records in it is unknown
            for index, record in enumerate(iter_records(field.batches)):
                row: dict[str, Any] = common | record._asdict()
                row["headers"] = [{"key": k, "value": v} for k, v in record.headers]
                row |= {"status": exchange.status, "acks": acks, "error": error}
                if is_request:
                    row["offset"] = None if base_offset is None else base_offset + index
                yield row


def _produce_results(
    exchange: Exchange,
) -> dict[tuple[str | None, UUID | None, int], tuple[int | None, str]]:
    """
    Return the first offset and the error of each topic and partition of a Produce response.

    Source: Kafka, ProduceResponse.json.
    """
    response = exchange.response
    if exchange.api_key != PRODUCE or response is None or response.body is None:
        return {}
    results: dict[tuple[str | None, UUID | None, int], tuple[int | None, str]] = {}
    for topic in response.body["responses"] or ():
        for partition in topic["partition_responses"] or ():
            base_offset, code = partition["base_offset"], partition["error_code"]
            place = topic.get("name"), topic.get("topic_id"), partition["index"]
            is_written = code == 0 and 0 <= base_offset < MAX_OFFSET
            results.setdefault(place, (base_offset if is_written else None, error_name(code)))
    return results
