"""Values by their schemas, to JSON texts: against fastavro and protobuf; and by hooks."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from benchmarks.timing import Row, call_us
from dissector.engine.exchanges.exchange_records import KINDS
from dissector.engine.tables.columns_of import columns_of
from dissector.public import open_capture
from dissector.query.contents.decoded_values import RecordValues
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from dissector.values.value_settings import ValueSettings

COUNT = 2_000
AVRO_ID, PROTOBUF_ID = 7, 8

HOOKED_RECORDS = 20_000

HOOK_BOUND_US = 2.0
"""The most that a record may cost with a hook that only counts."""

_COUNTING = """
count = 0

def value(record):
    global count
    count += 1
"""

_AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {
            "name": "user",
            "type": {
                "type": "record",
                "name": "User",
                "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
            },
        },
        {"name": "amount", "type": "double"},
    ],
}

_PROTOBUF = """
syntax = "proto3";
message Order {
  string id = 1;
  User user = 2;
  double amount = 3;
  message User { int64 id = 1; string name = 2; }
}
"""


def rows() -> Iterator[Row]:
    """Time keys and values of records from their bytes to a JSON text."""
    store = SchemaStore()
    store.add("avro", json.dumps(_AVRO), "orders-value", 1, refs=(AVRO_ID,))
    store.add("protobuf", _PROTOBUF, "events-value", 1, refs=(PROTOBUF_ID,))
    reader = ValueReader(store, TopicFormats())
    values = [_order(number) for number in range(COUNT)]
    yield _row("Avro", "fastavro and json", reader, _avro_data(values), _fastavro())
    kind = _message_class()
    yield _row("Protobuf", "protobuf", reader, _protobuf_data(kind, values), _protobuf(kind))


def _row(
    what: str, peer: str, reader: ValueReader, data: list[bytes], read: Callable[[bytes], object]
) -> Row:
    own_us = call_us(partial(_read_all, partial(reader.read, "orders"), data)) / COUNT
    peer_us = call_us(partial(_read_all, read, data)) / COUNT
    figures = f"{own_us:.1f} us a value against {peer_us:.1f} us"
    return Row(f"values to JSON, {what}", peer, peer_us / own_us, figures)


def _read_all(read: Callable[[bytes], object], data: list[bytes]) -> None:
    for each in data:
        read(each)


def _order(number: int) -> dict[str, Any]:
    user = {"id": number % 97, "name": f"name {number % 97}"}
    return {"id": f"order-{number}", "user": user, "amount": number / 4}


def _avro_data(values: list[dict[str, Any]]) -> list[bytes]:
    schema = fastavro.parse_schema(_AVRO)
    written = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, value)
        written.append(b"\x00" + AVRO_ID.to_bytes(4, "big") + out.getvalue())
    return written


def _fastavro() -> Callable[[bytes], object]:
    schema = fastavro.parse_schema(_AVRO)

    def read(data: bytes) -> str:
        value = fastavro.schemaless_reader(io.BytesIO(data[5:]), schema, None)
        return json.dumps(value, ensure_ascii=False)

    return read


def _message_class() -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", syntax="proto3")
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=field.TYPE_STRING, label=1)
    order.field.add(
        name="user", number=2, type=field.TYPE_MESSAGE, type_name=".Order.User", label=1
    )
    order.field.add(name="amount", number=3, type=field.TYPE_DOUBLE, label=1)
    user = order.nested_type.add(name="User")
    user.field.add(name="id", number=1, type=field.TYPE_INT64, label=1)
    user.field.add(name="name", number=2, type=field.TYPE_STRING, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))


def _protobuf_data(kind: Any, values: list[dict[str, Any]]) -> list[bytes]:
    prefix = b"\x00" + PROTOBUF_ID.to_bytes(4, "big") + b"\x00"
    return [prefix + json_format.ParseDict(each, kind()).SerializeToString() for each in values]


def _protobuf(kind: Any) -> Callable[[bytes], object]:
    def read(data: bytes) -> str:
        return json_format.MessageToJson(kind.FromString(data[6:]), indent=None)

    return read


def hook_rows(folder: Path) -> Iterator[Row]:
    """Time a hook that counts records in processor time, by the values with and without it."""
    script = folder / "counting.py"
    script.write_text(_COUNTING)
    columns = columns_of([_hooked_record(number) for number in range(HOOKED_RECORDS)], KINDS)
    chosen = np.arange(HOOKED_RECORDS)
    times = []
    for scripts in ((), (str(script),)):
        with open_capture(b"") as capture:
            values = RecordValues(capture, ValueSettings(scripts=scripts))

            def decode(values: RecordValues = values) -> object:
                return values.decoded_column(columns, "value", chosen, with_text=False)

            times.append(call_us(decode, clock=time.process_time) / HOOKED_RECORDS)
    without_us, with_us = times
    hook_us = with_us - without_us
    figures = f"{hook_us:.2f} us a record ({with_us:.2f} us with it, {without_us:.2f} us without)"
    yield Row(
        "a hook that counts records", f"{HOOK_BOUND_US:g} us", HOOK_BOUND_US / hook_us, figures, 1.0
    )


def _hooked_record(number: int) -> dict[str, object]:
    return {
        "topic": f"orders-{number % 7}",
        "partition": number % 12,
        "offset": number,
        "timestamp_ms": 1_700_000_000_000 + number,
        "client_id": f"client-{number % 5}",
        "packet": number // 10,
        "key": b"%012d" % number,
        "value": b"\xff%d" % number,  # of no format: little else is timed
        "headers": [],
    }
