"""Records as rows."""

from __future__ import annotations

import io

from dissector import open_capture
from dissector.engine.exchanges.exchange_records import COLUMNS, record_rows
from dissector.protocol.records import Record, new_batch
from tests.default_frames import request, response
from tests.tcp_captures import Wire, pcap_file

PRODUCE, FETCH = 0, 1


def batch(*values: bytes, base_offset: int = 0) -> bytes:
    headers = (("h", b"\xff"), ("n", None))
    records = [Record(0, 0, n, None, value, headers, n, 1000 + n) for n, value in enumerate(values)]
    made = new_batch(records, base_offset=base_offset, producer_id=5, base_sequence=3)
    return made.to_bytes(fix_crc=True)


def test_rows_of_produce_and_fetch_in_wire_order() -> None:
    wire = Wire()
    data = [
        {"name": "a", "partition_data": [{"index": 1, "records": batch(b"1", b"2")}]},
        {"name": "b", "partition_data": [{"index": 0, "records": None}]},
    ]
    connection = wire.connect().syn().client(request(PRODUCE, 7, 1, acks=1, topic_data=data))
    connection.broker(response(PRODUCE, 7, 1)).client(request(FETCH, 4, 2))
    partition = {
        "partition_index": 4,
        "error_code": 0,
        "high_watermark": 9,
        "last_stable_offset": 9,
        "aborted_transactions": None,
        "records": batch(b"3", base_offset=70),
    }
    connection.broker(response(FETCH, 4, 2, responses=[{"topic": "c", "partitions": [partition]}]))
    produce, fetch = open_capture("-", stdin=io.BytesIO(pcap_file(wire.packets)))
    first, second = record_rows(produce)
    (third,) = record_rows(fetch)
    assert tuple(first) == COLUMNS
    assert first == {
        "packet": 4,
        "client_id": "test",
        "status": "answered",
        "acks": 1,
        "connection": 0,
        "correlation_id": 1,
        "api": "Produce",
        "time_ns": produce.request_time_ns,
        "topic": "a",
        "topic_id": None,
        "partition": 1,
        "offset": None,
        "timestamp_ms": 1000,
        "key": None,
        "value": b"1",
        "headers": [{"key": "h", "value": b"\xff"}, {"key": "n", "value": None}],
        "magic": 2,
        "codec": "none",
        "producer_id": 5,
        "producer_epoch": -1,
        "sequence": 3,
        "transactional": False,
        "control": None,
        "error": None,
    }
    assert (second["value"], second["sequence"], second["offset"]) == (b"2", 4, None)
    assert (third["topic"], third["partition"], third["offset"], third["api"]) == (
        *("c", 4, 70),
        "Fetch",
    )
    assert third["time_ns"] == fetch.response_time_ns


def test_other_messages_have_no_records() -> None:
    wire = Wire()
    wire.connect().syn().client(request(12, 4, 1, group_id="g")).broker(response(12, 4, 1))
    (exchange,) = open_capture("-", stdin=io.BytesIO(pcap_file(wire.packets)))
    assert list(record_rows(exchange)) == []
