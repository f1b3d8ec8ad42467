"""Keys and values of produced records, decoded by their schemas, for the rules of family D."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from conform.evidence.batch_observation import BatchObservation
from dissector.hooks.hook_types import Record
from dissector.protocol.records import RecordBatch
from dissector.values.value_reader import DecodedValue

SIDES = {"key": True, "value": False}


class DecodedPart(NamedTuple):
    """
    The key or the value of a record.

    Attributes:
        record: Index of the record in its batch.
        side: `key` or `value`.
        data: Its bytes.
        headers: The headers of the record.
        found: Its format, schema and problem.
    """

    record: int
    side: str
    data: bytes
    headers: Mapping[str, bytes]
    found: DecodedValue


def decoded_parts(observation: BatchObservation) -> list[DecodedPart]:
    """Return the keys and values of a batch; none without schemas, or if it is damaged."""
    known: list[DecodedPart] | None = observation.__dict__.get("decoded_parts")
    if known is None:
        known = observation.__dict__["decoded_parts"] = list(_parts(observation))
    return known


def _parts(observation: BatchObservation) -> Iterator[DecodedPart]:
    values, batch = observation.capture_state.values, observation.batch
    if values is None or not isinstance(batch, RecordBatch) or batch.problems:
        return
    exchange = observation.exchange
    for index, record in enumerate(batch.records):
        headers = {name: content or b"" for name, content in record.headers}
        known = Record(
            observation.topic,
            record.key,
            record.value,
            headers,
            observation.partition,
            timestamp=record.timestamp,
            client_id=exchange.client_id,
            packet=exchange.request_packet,
        )
        for side, is_key in SIDES.items():
            data = record.key if is_key else record.value
            if data is not None:
                # Rules ask how it decodes, not what it says, which may be large.
                found = values.read(known, is_key)._replace(value=None, text=None)
                yield DecodedPart(index, side, data, headers, found)
