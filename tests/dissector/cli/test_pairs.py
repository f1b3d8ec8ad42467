from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars
import pytest

from dissector.engine.exchanges import exchange_facts
from dissector.engine.exchanges.exchange import COLUMNS
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run

KEYS = [
    "capture",
    "connection",
    "client",
    "broker",
    "origin",
    "api_key",
    "api",
    "api_version",
    "correlation_id",
    "client_id",
    "status",
    "request_packet",
    "response_packet",
    "request_time_ns",
    "response_time_ns",
    "latency_ms",
    "network_ms",
    "server_ms",
    "request_bytes",
    "response_bytes",
    "errors",
    "topics",
    "problems",
]
"""As the design has them; written out, because others rely on them."""

ENDS = {"connection": 0, "client": "10.0.0.1:50000", "broker": "10.0.0.2:9092", "origin": None}
NO_REQUEST = dict.fromkeys(
    (
        *("api_key", "api", "api_version", "client_id"),
        *("request_packet", "request_time_ns", "request_bytes"),
    )
)


def frame(data: bytes) -> int:
    """Size of a frame without its size field."""
    return len(data) - 4


def test_order_of_keys_in_ndjson(good: Run, shop: Path) -> None:
    done = good("pairs", shop, "-T", "ndjson")
    assert len(done.rows) == 9
    for row in done.rows:
        assert list(row) == KEYS


def test_an_answered_exchange(good: Run, shop: Path) -> None:
    row = good("pairs", shop, "-T", "ndjson").rows[1]
    assert row == {
        "capture": str(shop),
        **ENDS,
        "api_key": 0,
        "api": "Produce",
        "api_version": 9,
        "correlation_id": 2,
        "client_id": "shop",
        "status": "answered",
        "request_packet": 8,
        "response_packet": 10,
        "request_time_ns": cli_traffic.at_ns(7),
        "response_time_ns": cli_traffic.at_ns(9),
        "latency_ms": 2.0,
        "network_ms": 1.0,
        "server_ms": 1.0,
        "request_bytes": 162,
        "response_bytes": 53,
        "errors": ["NOT_LEADER_OR_FOLLOWER"],
        "topics": ["orders"],
        "problems": [],
    }


def test_bytes_count_the_frame_without_its_size(good: Run, shop: Path) -> None:
    row = good("pairs", shop, "-T", "ndjson", "-Y", "api == ApiVersions").rows[0]
    request = cli_traffic.request_frame(cli_traffic.API_VERSIONS, 3, 1, client_software_name="test")
    assert row["request_bytes"] == frame(request)


def test_requests_without_an_expected_response(good: Run, shop: Path) -> None:
    (row,) = good("pairs", shop, "-T", "ndjson", "-Y", "status == no_response").rows
    assert (row["correlation_id"], row["request_bytes"], row["topics"]) == (3, 162, ["orders"])
    assert [row[k] for k in ("response_time_ns", "latency_ms", "response_bytes")] == [None] * 3


def test_unanswered_requests(good: Run, shop: Path) -> None:
    (row,) = good("pairs", shop, "-T", "ndjson", "-Y", "status == unanswered").rows
    assert (row["api"], row["correlation_id"], row["request_time_ns"]) == (
        "Heartbeat",
        7,
        cli_traffic.at_ns(27),
    )
    assert [row[k] for k in ("response_time_ns", "latency_ms", "response_bytes")] == [None] * 3


def test_an_orphan_has_no_request(good: Run, shop: Path) -> None:
    (row,) = good("pairs", shop, "-T", "ndjson", "-Y", "status == orphan").rows
    size = frame(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 77))
    assert row == {
        "capture": str(shop),
        **ENDS,
        **NO_REQUEST,
        "correlation_id": 77,
        "status": "orphan",
        "response_packet": 18,
        "response_time_ns": cli_traffic.at_ns(17),
        "latency_ms": None,
        "network_ms": None,
        "server_ms": None,
        "response_bytes": size,
        "errors": [],
        "topics": [],
        "problems": [],
    }


def test_status_is_one_of_four(good: Run, shop: Path) -> None:
    rows = good("pairs", shop, "-T", "ndjson").rows
    assert {row["status"] for row in rows} == {"answered", "unanswered", "no_response", "orphan"}


def test_ipv6_addresses_are_in_brackets_and_null_client_ids_are_null(good: Run, shop: Path) -> None:
    (row,) = good("pairs", shop, "-T", "ndjson", "-Y", "connection == 2").rows
    assert (row["client"], row["broker"]) == ("[fd00::1]:50001", "[fd00::2]:9092")
    assert row["client_id"] is None


def test_a_topic_id_has_its_name_from_later_in_the_capture(good: Run, shop: Path) -> None:
    (row,) = good("pairs", shop, "-T", "ndjson", "-Y", "api == Fetch").rows
    assert row["topics"] == ["orders"]


def test_rows_are_in_the_order_of_ends_of_exchanges(good: Run, tmp_path: Path) -> None:
    """One without a response at its request; an unanswered one when its connection ends."""
    wire = tcp_captures.Wire()
    left, right = wire.connect().syn(), wire.connect(50001).syn()
    left.client(
        cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1),
        cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 2),
    )
    right.client(
        cli_traffic.request_frame(cli_traffic.PRODUCE, 9, 1, acks=0),
        cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 2),
    )
    right.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 2))
    left.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 2)).fin()
    right.client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 3)).broker(
        cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 3)
    )
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    rows = good("pairs", path, "-T", "ndjson").rows
    assert [(r["connection"], r["correlation_id"], r["status"]) for r in rows] == [
        (1, 1, "no_response"),
        (1, 2, "answered"),
        (0, 2, "answered"),
        (0, 1, "unanswered"),
        (1, 3, "answered"),
    ]


def test_csv_has_the_same_columns_and_values(good: Run, shop: Path) -> None:
    out = good("pairs", shop, "-T", "csv").out
    assert out.count("\r\n") == 10
    header, *rows = csv.reader(io.StringIO(out, newline=""))
    assert header == KEYS
    expected = good("pairs", shop, "-T", "ndjson").rows
    assert rows == [[_csv_cell(row[key]) for key in KEYS] for row in expected]


def _csv_cell(value: Any) -> str:
    return ";".join(value) if isinstance(value, list) else "" if value is None else str(value)


def test_parquet_has_the_same_columns_and_values(good: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    assert good("pairs", shop, "-T", "parquet", "-o", file).out == ""
    table = polars.read_parquet(file)
    assert table.columns == KEYS
    assert table.to_dicts() == good("pairs", shop, "-T", "ndjson").rows


def test_parquet_goes_to_stdout_unless_a_terminal(
    shop: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from dissector.cli import main

    assert main(["pairs", str(shop), "-T", "parquet"]) == 0
    out, err = capfdbinary.readouterr()
    assert (polars.read_parquet(io.BytesIO(out)).height, err) == (9, b"")


def test_parquet_without_rows_has_its_columns(good: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    good("pairs", shop, "-T", "parquet", "-o", file, "-Y", "api == Vote", "--bodies")
    assert polars.read_parquet(file).columns == [*KEYS, "request", "response"]


def test_table_is_the_default_format(good: Run, shop: Path) -> None:
    done = good("pairs", shop)
    assert done.lines[0].split()[:3] == ["request_packet", "response_packet", "request_time"]
    assert done.lines[0].split()[3:6] == ["connection", "client", "broker"]
    assert len(done.lines) == 10
    assert "  0.007000  " in done.lines[2]
    assert done == good("pairs", shop, "-T", "table")


def test_bodies_in_ndjson(good: Run, shop: Path) -> None:
    rows = {
        row["correlation_id"]: row
        for row in good("pairs", shop, "-T", "ndjson", "--bodies", "-Y", "connection == 0").rows
    }
    assert all(list(row) == [*KEYS, "request", "response"] for row in rows.values())
    produce = rows[2]["request"]
    assert list(produce) == ["transactional_id", "acks", "timeout_ms", "topic_data"]
    (topic,) = produce["topic_data"]
    assert (topic["name"], topic["partition_data"][0]["index"]) == ("orders", 3)
    (batch,) = topic["partition_data"][0]["records"]
    assert (batch["magic"], batch["codec"], batch["producer_id"]) == (2, "zstd", 7)
    assert [(r["key"], r["value"]) for r in batch["records"]] == [
        (b"anna".hex(), b'{"lamp": 1}'.hex()),
        ("ff00", None),
    ]
    assert batch["records"][1]["headers"] == [
        {"key": "trace", "value": "fe"},
        {"key": "lang", "value": b"de".hex()},
        {"key": "none", "value": None},
    ]
    assert rows[2]["response"]["responses"][0]["partition_responses"][0]["error_code"] == 6
    assert rows[4]["request"]["topics"][0]["topic_id"] == str(cli_traffic.ORDERS_ID)
    assert rows[4]["response"]["responses"][0]["partitions"][0]["records"][0]["base_offset"] == 12


def test_a_missing_body_is_null(good: Run, shop: Path) -> None:
    rows = good("pairs", shop, "-T", "ndjson", "--bodies", "-Y", "status != answered").rows
    missing = {row["status"]: (row["request"] is None, row["response"] is None) for row in rows}
    assert missing == {
        "no_response": (False, True),
        "orphan": (True, True),
        "unanswered": (False, True),
    }


def test_an_undecodable_body_is_null_with_a_problem(good: Run, shop: Path) -> None:
    (row,) = good("pairs", shop, "-T", "ndjson", "--bodies", "-Y", "problem").rows
    assert row["request"] is None
    assert row["response"] == {"throttle_time_ms": 0, "error_code": 0}
    (problem,) = row["problems"]
    at = cli_traffic.malformed_heartbeat(6)[4:].index(b"\x7fg")
    assert problem.startswith(f"request.group_id at byte {at}: Heartbeat v4: length 126")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_bodies_in_csv_and_parquet_are_json_text(
    good: Run, shop: Path, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "out"
    good("pairs", shop, "-T", form, "--bodies", "-o", file, "-Y", "api == Heartbeat")
    table = polars.read_csv(file) if form == "csv" else polars.read_parquet(file)
    as_json = good("pairs", shop, "-T", "ndjson", "--bodies", "-Y", "api == Heartbeat").rows
    for name in ("request", "response"):
        values = [text and json.loads(text) for text in table[name].to_list()]
        assert values == [row[name] for row in as_json]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("filter_text", [None, "not api == Metadata"])
def test_bodies_are_the_same_from_columns_and_objects(
    good: Run,
    shop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    filter_text: str | None,
) -> None:
    outputs = []
    chosen = ["-Y", filter_text] if filter_text else []
    for number, worthwhile in enumerate((1, 10**9)):
        monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", worthwhile)
        file = tmp_path / str(number)
        good("pairs", shop, "-T", form, "--bodies", "-o", file, *chosen)
        outputs.append(polars.read_parquet(file) if form == "parquet" else file.read_bytes())
    assert outputs[0].equals(outputs[1]) if form == "parquet" else outputs[0] == outputs[1]


def test_plain_words_are_a_column_and_a_name_in_filters(
    good: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = Path("captures/demo.pcap")
    first = "demo.orders[0] 36 records 357 B zstd acks=all → offset 0"
    for worthwhile in (1, 10**9):
        monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", worthwhile)
        text = 'info contains "demo.orders[0]" and api == Produce'
        chosen = ("pairs", demo, "-Y", text, "--columns", "request_packet,info")
        rows = good(*chosen, "-T", "ndjson").rows
        assert rows[0] == {"request_packet": 64, "info": first}
        assert all(row["info"].startswith("demo.orders[0] ") for row in rows)
        good(*chosen, "-T", "parquet", "-o", tmp_path / "words")
        assert polars.read_parquet(tmp_path / "words").to_dicts() == rows
        assert good(*chosen, "-T", "csv").out.splitlines()[1:] == [
            f"{row['request_packet']},{row['info']}" for row in rows
        ]
        assert len(good("records", demo, "-Y", f'info == "{first}"', "-T", "ndjson").rows) == 36


def test_plain_words_mask_secrets_and_escape(good: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    for number, group in enumerate(("a\x1b[2J", "password=hunter2")):
        connection.client(cli_traffic.request_frame(12, 0, number, group_id=group))
        connection.broker(cli_traffic.response_frame(12, 0, number))
    capture = tcp_captures.write(tmp_path / "secret.pcap", wire.packets)
    out = good("pairs", capture, "--columns", "info").out
    assert "hunter2" not in out
    assert "\\x1b[2J" in out
    assert "hunter2" in good("pairs", capture, "--columns", "info", "--show-secrets").out


def test_bodies_are_refused_in_the_table(run: Run, shop: Path) -> None:
    done = run("pairs", shop, "--bodies")
    assert (done.status, done.out) == (2, "")
    assert done.err == "kafkashark: --bodies requires -T ndjson, csv or parquet\n"


def test_filter(good: Run, shop: Path) -> None:
    text = "api == Produce && request.acks == 0 or latency_ms > 1 and errors"
    rows = good("pairs", shop, "-T", "ndjson", "-Y", text).rows
    assert [row["correlation_id"] for row in rows] == [2, 3]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_can_be_sorted_by(good: Run, shop: Path, column: str) -> None:
    values = [r[column] for r in good("pairs", shop, "-T", "ndjson", "--sort", column).rows]
    there = [value for value in values if value is not None]
    assert values == [None] * (len(values) - len(there)) + sorted(there)


def test_sorting_by_bodies_and_several_columns(good: Run, shop: Path) -> None:
    rows = good("pairs", shop, "-T", "ndjson", "--sort", "api,response_time_ns", "--bodies").rows
    order = [(row["api"] or "", row["response_time_ns"] or 0) for row in rows]
    assert order == sorted(order)
    good("pairs", shop, "-T", "ndjson", "--sort", "request,response", "--bodies")


def test_sorting_by_an_unknown_column(run: Run, shop: Path) -> None:
    done = run("pairs", shop, "--sort", "api,request")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kafkashark: --sort: no column 'request'; columns are capture, ")


def test_port_selects_connections(good: Run, run: Run, shop: Path, tmp_path: Path) -> None:
    assert len(good("pairs", shop, "-T", "ndjson", "--port", "9092").rows) == 9
    none = run("pairs", shop, "-T", "ndjson", "--port", "9093")
    assert (none.status, none.out) == (0, "")
    assert none.err.startswith("kafkashark: no Kafka in ")
    wire = tcp_captures.Wire()
    for broker_port in (7000, 7001, 7002):
        connection = wire.connect(broker_port=broker_port).syn()
        connection.client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1)).broker(
            cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 1)
        )
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    rows = good("pairs", path, "-T", "ndjson", "--port", "7000", "--port", "7002").rows
    assert [row["broker"] for row in rows] == ["10.0.0.2:7000", "10.0.0.2:7002"]
    assert len(good("pairs", path, "-T", "ndjson").rows) == 3


def test_kafka_given_by_port_but_not_recognisable_by_content(good: Run, tmp_path: Path) -> None:
    """An unknown API is accepted on a port given as Kafka's."""
    wire = tcp_captures.Wire()
    strange = bytearray(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1))
    strange[4:8] = b"\x03\xe7\x00\x01"
    wire.connect(broker_port=7000).syn().client(bytes(strange)).broker(
        cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 1)
    )
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    (row,) = good("pairs", path, "-T", "ndjson", "--port", "7000").rows
    assert (row["api_key"], row["api_version"], row["status"]) == (999, 1, "answered")
    assert row["problems"]


def test_several_files_are_one_capture(good: Run, tmp_path: Path) -> None:
    sent = cli_traffic.shop().packets
    parts = [
        tcp_captures.write(tmp_path / f"{n}.pcap", sent[a:b])
        for n, (a, b) in enumerate([(0, 8), (8, 26), (26, len(sent))])
    ]
    whole = tcp_captures.write(tmp_path / "whole.pcap", sent)
    rows = good("pairs", *parts, "-T", "ndjson").rows
    expected = good("pairs", whole, "-T", "ndjson").rows
    assert [row | {"capture": ""} for row in rows] == [row | {"capture": ""} for row in expected]
    # An exchange belongs to the file in which its request was completed.
    files = {(row["connection"], row["correlation_id"]): row["capture"] for row in rows}
    assert [files[key] for key in ((0, 2), (0, 3), (0, 7), (2, 1))] == [
        parts[0],
        parts[1],
        parts[2],
        parts[2],
    ]


def test_a_frame_above_the_limit_is_a_problem(good: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    long = cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1, group_id="g" * 200_000)
    connection = wire.connect().syn().client(*tcp_captures.pieces(long, range(0, 210_000, 60_000)))
    connection.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 1))
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    words = "pairs", path, "-T", "ndjson", "--bodies"
    (row,) = good(*words).rows
    assert (len(row["request"]["group_id"]), row["problems"]) == (200_000, [])
    (row,) = good(*words, "--max-frame-bytes", "199999").rows
    assert (row["status"], row["request_bytes"]) == ("answered", frame(long))
    assert row["request"] is None
    assert row["problems"]
