from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path

import polars
import pytest

from dissector import open_capture
from dissector.engine.exchanges.exchange_records import COLUMNS
from dissector.engine.reading.capture import Options
from dissector.protocol.records import Record, build_records, new_batch
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.cli_traffic import FETCH, HEARTBEAT, PRODUCE
from tests.dissector.cli.conftest import Run

KEYS = [
    "connection",
    "correlation_id",
    "api",
    "client_id",
    "packet",
    "time_ns",
    "topic",
    "topic_id",
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "value",
    "headers",
    "magic",
    "codec",
    "producer_id",
    "producer_epoch",
    "sequence",
    "transactional",
    "control",
    "status",
    "acks",
    "error",
]
"""As the design has them."""


def test_order_of_keys_in_ndjson(good: Run, shop: Path) -> None:
    rows = good("records", shop, "-T", "ndjson").rows
    assert len(rows) == 6
    for row in rows:
        assert list(row) == KEYS


def test_a_produced_and_a_fetched_record(good: Run, shop: Path) -> None:
    rows = good("records", shop, "-T", "ndjson").rows
    assert rows[1] == {
        "connection": 0,
        "correlation_id": 2,
        "api": "Produce",
        "client_id": "shop",
        "packet": 8,
        "time_ns": cli_traffic.at_ns(7),
        "topic": "orders",
        "topic_id": None,
        "partition": 3,
        "offset": None,
        "timestamp_ms": 1_700_000_000_005,
        "key": {"hex": "ff00"},
        "value": None,
        "headers": [
            {"key": "trace", "value": {"hex": "fe"}},
            {"key": "lang", "value": "de"},
            {"key": "none", "value": None},
        ],
        "magic": 2,
        "codec": "zstd",
        "producer_id": 7,
        "producer_epoch": 1,
        "sequence": 41,
        "transactional": False,
        "control": None,
        "status": "answered",
        "acks": -1,
        "error": "NOT_LEADER_OR_FOLLOWER",
    }
    fetched = rows[4]
    assert (fetched["api"], fetched["time_ns"], fetched["offset"]) == (
        "Fetch",
        cli_traffic.at_ns(15),
        12,
    )
    assert (fetched["topic"], fetched["topic_id"]) == ("orders", str(cli_traffic.ORDERS_ID))
    assert (fetched["key"], fetched["value"]) == (None, "grüße")


def test_records_have_columns_of_their_request(good: Run, shop: Path) -> None:
    rows = good("records", shop, "-T", "ndjson").rows
    names = ("api", "packet", "client_id", "status", "acks")
    assert [tuple(row[name] for name in names) for row in rows[2:5]] == [
        ("Produce", 12, "shop", "no_response", 0),
        ("Produce", 12, "shop", "no_response", 0),
        ("Fetch", 16, "shop", "answered", None),
    ]


def test_records_of_magic_1(good: Run, shop: Path) -> None:
    (row,) = good("records", shop, "-T", "ndjson", "-Y", "topic == old").rows
    assert (row["magic"], row["timestamp_ms"], row["key"], row["value"]) == (1, 9, "k", "v")


def test_csv(good: Run, shop: Path) -> None:
    header, *rows = csv.reader(io.StringIO(good("records", shop, "-T", "csv").out, newline=""))
    assert header == KEYS
    cells = dict(zip(KEYS, rows[1], strict=True))
    assert (cells["key"], cells["value"], cells["transactional"]) == ("0xff00", "", "false")
    assert cells["headers"].split(";") == ['trace={"hex": "fe"}', "lang=de", "none=null"]


def test_parquet_has_bytes(good: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "records.parquet"
    good("records", shop, "-T", "parquet", "-o", file)
    table = polars.read_parquet(file)
    assert table.columns == KEYS
    assert table["key"].to_list()[:2] == [b"anna", b"\xff\x00"]
    assert table["value"].to_list()[4] == "grüße".encode()
    assert table["headers"].to_list()[1][0] == {"key": "trace", "value": b"\xfe"}


def test_table(good: Run, shop: Path) -> None:
    lines = good("records", shop).lines
    assert (len(lines), lines[0].split()[:2]) == (7, ["packet", "time"])
    assert "0xff00" in lines[2]
    assert "grüße" in lines[5]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_can_be_sorted_by(good: Run, shop: Path, column: str) -> None:
    rows = good("records", shop, "-T", "ndjson", "--sort", column).rows
    assert len(rows) == 6
    values = [row[column] for row in rows]
    assert values == sorted(values, key=lambda v: v is not None), "nulls first"
    if column in ("offset", "topic", "timestamp_ms"):
        there = [value for value in values if value is not None]
        assert there == sorted(there)


def test_records_of_matching_exchanges(good: Run, shop: Path) -> None:
    rows = good("records", shop, "-T", "ndjson", "-Y", "status == no_response").rows
    assert [row["correlation_id"] for row in rows] == [3, 3]
    assert good("records", shop, "-T", "ndjson", "-Y", "api == Metadata").out == ""


@pytest.mark.thinned(3)
@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("name", ["demo.pcap", "kafka4-quorum.pcap", "kafka4-reassignment.pcap"])
def test_columns_and_rows_print_the_same(good: Run, name: str, form: str, tmp_path: Path) -> None:
    capture = Path(__file__).parents[3] / "captures" / name
    bulk, rows = tmp_path / "bulk", tmp_path / "rows"
    good("records", capture, "-T", form, "-o", bulk)
    good(
        "records", capture, "-T", form, "-o", rows, "-Y", "connection >= 0"
    )  # evaluated row by row
    if form == "parquet":
        assert polars.read_parquet(bulk).equals(polars.read_parquet(rows))
    else:
        assert bulk.read_bytes() == rows.read_bytes()
    assert bulk.stat().st_size > 1000


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One Produce request and one Fetch response, each of two topics."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    topics = "audit", "orders"
    data = [
        {"name": topic, "partition_data": [{"index": 0, "records": batch(f"{topic} produced")}]}
        for topic in topics
    ]
    connection.client(cli_traffic.request_frame(cli_traffic.PRODUCE, 9, 1, acks=1, topic_data=data))
    said = [(0, 2841), (6, -1)]
    answers = [
        {
            "name": topic,
            "partition_responses": [{"index": 0, "error_code": code, "base_offset": base}],
        }
        for topic, (code, base) in zip(topics, said, strict=True)
    ]
    connection.broker(cli_traffic.response_frame(cli_traffic.PRODUCE, 9, 1, responses=answers))
    connection.client(cli_traffic.request_frame(cli_traffic.FETCH, 4, 2))
    got = [
        {"topic": topic, "partitions": [{"partition_index": 0, "records": batch("fetched", 70)}]}
        for topic in topics
    ]
    connection.broker(cli_traffic.response_frame(cli_traffic.FETCH, 4, 2, responses=got))
    path = tmp_path_factory.mktemp("mixed") / "mixed.pcap"
    tcp_captures.write(path, wire.packets)
    return path


def batch(value: str, base_offset: int = 0) -> bytes:
    records = [Record(key=b"k", value=value.encode(), headers=(("h", b"x"),)), Record(value=b"2")]
    return build_records([new_batch(records, base_offset=base_offset)])


def test_produced_records_have_log_offsets_or_an_error(good: Run, mixed: Path) -> None:
    rows = good("records", mixed, "-T", "ndjson").rows
    assert [(row["topic"], row["offset"], row["error"]) for row in rows] == [
        ("audit", 2841, "NONE"),
        ("audit", 2842, "NONE"),
        ("orders", None, "NOT_LEADER_OR_FOLLOWER"),
        ("orders", None, "NOT_LEADER_OR_FOLLOWER"),
        *((topic, offset, None) for topic in ("audit", "orders") for offset in (70, 71)),
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("topic == audit", [0, 1, 4, 5]),
        ("kafka.topic_name matches AUDIT and api == Fetch", [4, 5]),
        ("topic != audit", [2, 3, 6, 7]),
        ("not topic == audit and not api == Fetch", [2, 3]),
        ("topic in {orders} or value contains 'audit prod'", [0, 2, 3, 6, 7]),
        ("offset > 70", [0, 1, 5, 7]),
        ("offset == null", [2, 3]),
        ("error != NONE", [2, 3]),
        ("error == NONE and key == k", [0]),
        ("headers == 'h=x' and value == fetched", [4, 6]),
        ("headers contains 'h=' and headers ~ '=X$' and value == fetched", [4, 6]),
        ("headers == h", []),
        ("headers.h == x and value == fetched", [4, 6]),
        ("headers.key == h and headers.value == x and value == fetched", [4, 6]),
        ("value == fetched and client_id == shop and request.max_wait_ms == 0", [4, 6]),
        ("partition == 1", []),
    ],
)
@pytest.mark.parametrize("worthwhile", [1, 100])
def test_a_filter_tests_each_record(
    good: Run,
    mixed: Path,
    monkeypatch: pytest.MonkeyPatch,
    worthwhile: int,
    text: str,
    numbers: list[int],
) -> None:
    monkeypatch.setattr("dissector.engine.exchanges.exchange_facts.MIN_BULK_EXCHANGES", worthwhile)
    rows = good("records", mixed, "-T", "ndjson").rows
    found = good("records", mixed, "-T", "ndjson", "-Y", text).rows
    assert found == [rows[number] for number in numbers]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-Y", "topic == orders"],
        ["-Y", "key contains k"],
        ["--columns", "api,packet,request.acks"],
    ],
    ids=["all", "exchanges", "records", "objects"],
)
@pytest.mark.parametrize("window_bytes", [1 << 16, 1 << 24])
def test_a_fetch_is_never_before_the_produce_that_it_reads(
    good: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    window_bytes: int,
    options: list[str],
) -> None:
    """Consumers read records before the answer to their Produce, even some windows before."""
    monkeypatch.setattr(
        "dissector.cli.capture_source.Options", partial(Options, window_bytes=window_bytes)
    )
    wire = tcp_captures.Wire()
    producer, consumer = wire.connect(50000).syn(), wire.connect(50001).syn()
    filler = wire.connect(50002).syn()
    for number in range(6):
        batch = build_records(
            [new_batch([Record(key=b"k", value=bytes(1000))], base_offset=number, codec="none")]
        )
        data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch}]}]
        topic = {"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": number}]}
        consumer.client(cli_traffic.request_frame(FETCH, 12, number, topics=[topic]))
        producer.client(cli_traffic.request_frame(PRODUCE, 9, number, acks=-1, topic_data=data))
        got = [{"partition_index": 0, "high_watermark": 9, "records": batch}]
        answer = [{"topic": "orders", "partitions": got}]
        consumer.broker(cli_traffic.response_frame(FETCH, 12, number, responses=answer))
        for each in range(number * 8):
            filler.client(cli_traffic.request_frame(HEARTBEAT, 4, each, group_id="g" * 9000))
            filler.broker(cli_traffic.response_frame(HEARTBEAT, 4, each))
        producer.broker(cli_traffic.response_frame(PRODUCE, 9, number, responses=[]))
    path = tcp_captures.write(tmp_path / "order.pcap", wire.packets)
    rows = good("records", path, "-T", "ndjson", *options).rows
    assert [row["api"] for row in rows] == ["Produce", "Fetch"] * 6
    packets = [row["packet"] for row in rows]
    assert packets == sorted(packets)
    text = options[1] if options[:1] == ["-Y"] else None
    capture = open_capture(path, filter=text)
    capture.options.window_bytes = window_bytes
    assert (len(list(capture.windows())) > 3) == (window_bytes == 1 << 16)
    assert capture.records()["packet"].to_list() == packets
