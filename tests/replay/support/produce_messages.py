"""Produce requests and their answers, as frames without their sizes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.apis import KEYS, api
from dissector.protocol.records import Record, build_records, new_batch
from replay.plan.plan import Plan
from replay.templates.step_arrays import StepArrays
from tests import default_frames
from tests.replay.support.builders import uuid
from tests.replay.support.outcomes import filled

PRODUCE = KEYS["Produce"]
ID_OF = {"orders": 1, "p-orders": 11, "audit": 2, "p-audit": 12}


class Written(NamedTuple):
    """Records for one partition."""

    topic: str
    partition: int
    values: Sequence[bytes] = (b"v",)
    producer: tuple[int, int, int] = (-1, -1, -1)
    codec: str = "none"

    def records(self) -> bytes:
        producer_id, epoch, sequence = self.producer
        records = [Record(0, 0, i, None, value, (), i, 0) for i, value in enumerate(self.values)]
        return new_batch(
            records,
            codec=self.codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        ).to_bytes()


def batches(*offsets: int, attributes: int = 0) -> bytes:
    """Batches of one record each, as in a response."""
    made = []
    for offset in offsets:
        batch = new_batch([Record(0, 0, 0, None, b"x", (), 0, 0, None)])
        batch.base_offset, batch.attributes = offset, attributes
        made.append(batch)
    return build_records(made)


def produce_request(
    version: int, written: Sequence[Written], number: int = 0, **more: Any
) -> bytes:
    found = api(PRODUCE)
    assert found is not None
    topics = [
        {
            **_title(version, each.topic),
            "partition_data": [{"index": each.partition, "records": each.records()}],
        }
        for each in written
    ]
    body = {"acks": -1, "timeout_ms": 100, "topic_data": topics, **more}
    values = filled(found.request.fields, version, body)
    return default_frames.request(PRODUCE, version, number, "tester", **values)[4:]


def produce_response(
    version: int, places: Sequence[tuple[str, int, int]], number: int = 0, **more: Any
) -> bytes:
    """The response: topic, partition and base offset of each; `more` goes to all partitions."""
    found = api(PRODUCE)
    assert found is not None
    own = {field.name for field in found.response.fields}
    topics = [
        {
            **_title(version, topic),
            "partition_responses": [
                {
                    "index": partition,
                    "base_offset": offset,
                    **{name: value for name, value in more.items() if name not in own},
                }
            ],
        }
        for topic, partition, offset in places
    ]
    body = {"responses": topics, **{name: more[name] for name in own & more.keys()}}
    values = filled(found.response.fields, version, body)
    return default_frames.response(PRODUCE, version, number, **values)[4:]


def _title(version: int, topic: str) -> dict[str, Any]:
    return {"topic_id": uuid(ID_OF[topic])} if version >= 13 else {"name": topic}


def plan_of(exchanges: Sequence[tuple[bytes, bytes]], shapes: Sequence[int] = ()) -> Plan:
    """A plan of independent exchanges, of shape 0 by default."""
    plan = Plan()
    for number, (request, answer) in enumerate(exchanges):
        version = int.from_bytes(request[2:4], "big")
        ends = 0, "c:1", "b:2", PRODUCE, version, number, "tester"
        captured = CapturedExchange(*ends, request, answer, True, number, number)
        plan.spill.add(captured, shapes[number] if shapes else 0)
        plan.cause_ends.append(0)
    return plan


def arrays_of(exchanges: Sequence[tuple[bytes, bytes]], shapes: Sequence[int] = ()) -> StepArrays:
    """The same as arrays for kernels, without responses or times yet."""
    return StepArrays(plan_of(exchanges, shapes), bytearray(len(exchanges)), array("q"))
