from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest

from dissector.cli.presentation import message_windows
from dissector.engine.exchanges import exchange_facts
from dissector.view.json import message_rows
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run

KEYS = [
    "capture",
    "packet",
    "time_ns",
    "connection",
    "source",
    "target",
    "kind",
    "api_key",
    "api",
    "api_version",
    "correlation_id",
    "client_id",
    "bytes",
    "status",
    "latency_ms",
    "errors",
    "topics",
    "problems",
    "body",
]


def test_one_line_per_message_in_packet_order(good: Run, shop: Path) -> None:
    lines = good("dissect", shop).lines
    numbers = [int(line.split()[0]) for line in lines]
    assert numbers == [4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 43, 45]
    expected = "10 0.009000 #0 10.0.0.2:9092 -> 10.0.0.1:50000 Produce v9 response id 2"
    assert " ".join(lines[3].split()) == f"{expected} NOT_LEADER_OR_FOLLOWER 2.000 ms"
    assert lines[4].endswith("id 3  shop  orders  no response is due")
    assert lines[7].split()[6:] == ["unknown", "response", "id", "77", "orphan"]
    assert lines[10].endswith("[1 problem]")
    assert lines[12].endswith("unanswered")
    assert lines[13].split()[3:6] == ["[fd00::1]:50001", "->", "[fd00::2]:9092"]


def test_packet_order_holds_with_slow_responses(good: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    slow, quick = wire.connect().syn(), wire.connect(50001).syn()
    slow.client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1))
    for number in range(20):
        quick.client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, number))
        quick.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, number))
    slow.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 1))
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    rows = good("dissect", path, "-T", "ndjson").rows
    assert [row["packet"] for row in rows] == sorted(row["packet"] for row in rows)
    assert (rows[0]["connection"], rows[-1]["connection"], len(rows)) == (0, 0, 42)


def test_tree(good: Run, shop: Path) -> None:
    out = good("dissect", shop, "-V", "-Y", "correlation_id == 2").out
    for line in (
        "Produce v9 request, 162 bytes",
        "  header [0..15)",
        "    request_api_key: 0 (Produce) [0..2)",
        '    client_id: "shop" [8..14)',
        "    timeout_ms: 1500 [18..22)",
        "            error_code: 6 (NOT_LEADER_OR_FOLLOWER) [18..20)",
    ):
        assert f"\n{line}" in out, out
    assert "record batch of magic 2, zstd" in out
    assert out.endswith("\n\n"), "an empty line separates the messages"


def test_tree_of_an_undecodable_body(good: Run, shop: Path) -> None:
    out = good("dissect", shop, "--tree", "-Y", "problem").out
    assert re.search(r"\n  ! request\.group_id at byte 15: Heartbeat v4: length 126", out)


def test_tree_shows_names_of_topic_ids(good: Run, shop: Path) -> None:
    out = good("dissect", shop, "-V", "-Y", "api == Fetch").out
    assert re.search(rf"topic_id: {cli_traffic.ORDERS_ID}.*orders", out)


def test_bytes(good: Run, shop: Path) -> None:
    lines = good("dissect", shop, "-x", "-Y", "correlation_id == 7").lines
    frame = cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 7, group_id="g", member_id="m")[4:]
    dumped = [line.split("  ") for line in lines[1:-1]]
    assert [cells[0] for cells in dumped] == ["0000", "0010"]
    data = bytes.fromhex("".join(line[4:54] for line in lines[1:-1]))
    assert data == frame
    assert lines[-1] == ""


def test_tree_with_bytes(good: Run, shop: Path) -> None:
    lines = good("dissect", shop, "-V", "-x", "-Y", "correlation_id == 7").lines
    assert lines.index("Heartbeat v4 request, 25 bytes") < lines.index(
        next(line for line in lines if line.startswith("0000  "))
    )


def test_ndjson(good: Run, shop: Path) -> None:
    rows = good("dissect", shop, "-T", "ndjson").rows
    assert len(rows) == 15
    assert all(list(row) == KEYS for row in rows)
    assert rows[3] == {
        "capture": str(shop),
        "packet": 10,
        "time_ns": cli_traffic.at_ns(9),
        "connection": 0,
        "source": "10.0.0.2:9092",
        "target": "10.0.0.1:50000",
        "kind": "response",
        "api_key": 0,
        "api": "Produce",
        "api_version": 9,
        "correlation_id": 2,
        "client_id": None,
        "bytes": 53,
        "status": "answered",
        "latency_ms": 2.0,
        "errors": ["NOT_LEADER_OR_FOLLOWER"],
        "topics": [],
        "problems": [],
        "body": rows[3]["body"],
    }
    assert rows[3]["body"]["responses"][0]["name"] == "orders"
    assert rows[2]["body"]["topic_data"][0]["partition_data"][0]["records"][0]["magic"] == 2
    assert rows[10]["body"] is None
    assert rows[10]["problems"]


def test_fields(good: Run, shop: Path) -> None:
    words = "-e", "api", "-e", "request.acks", "-e", "kafka.correlation_id", "-e", "errors"
    lines = good("dissect", shop, "-T", "fields", *words, "-Y", "api == Produce").lines
    assert lines == [
        "Produce\t-1\t2\tNOT_LEADER_OR_FOLLOWER",
        "Produce\t\t2\tNOT_LEADER_OR_FOLLOWER",
        "Produce\t0\t3\t",
        "Produce\t1\t1\t",
        "Produce\t\t1\t",
    ]


def test_fields_of_arrays_are_joined(good: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    keys = [{"api_key": key} for key in (3, 1, 2)]
    connection = (
        wire.connect().syn().client(cli_traffic.request_frame(cli_traffic.API_VERSIONS, 3, 1))
    )
    connection.broker(cli_traffic.response_frame(cli_traffic.API_VERSIONS, 3, 1, api_keys=keys))
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    done = good("dissect", path, "-T", "fields", "-e", "response.api_keys.api_key")
    assert done.lines == ["", "3,1,2"]


@pytest.mark.parametrize("name", ["client_id", "request.group_id"])
def test_each_message_has_one_line_of_fields(good: Run, tmp_path: Path, name: str) -> None:
    wire = tcp_captures.Wire()
    evil = "a\tb\nc\x1b[2J\x9b1m\u202e"
    connection = (
        wire.connect()
        .syn()
        .client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1, group_id="g"))
    )
    connection.client(
        cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 2, client_id=evil, group_id=evil)
    )
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    done = good("dissect", path, "-T", "fields", "-e", name)
    assert good("dissect", path, "-e", name).out == done.out
    assert done.lines[1:] == [r"a\x09b\x0ac\x1b[2J\u009b1m\u202e"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-T", "fields"], "-T fields takes the names: --columns NAME,NAME or -e NAME"),
        (["-e", "api", "-V"], "--columns and -e NAME go with -T fields, json and ek"),
        (["-V", "-T", "ndjson"], "-V and -x go with -T text"),
        (["-x", "-T", "fields", "-e", "api"], "-V and -x go with -T text"),
        (["-T", "table"], "-T takes text, ndjson, fields, parquet, json, ek, not 'table'"),
    ],
)
def test_invalid_combinations_of_options(run: Run, shop: Path, words: list[str], said: str) -> None:
    assert run("dissect", shop, *words) == (2, "", f"kafkashark: {said}\n")


def test_an_unknown_field(run: Run, shop: Path) -> None:
    done = run("dissect", shop, "-T", "fields", "-e", "api", "-e", "request.acts")
    assert (done.status, done.out) == (2, "")
    said, text, caret = done.err.splitlines()
    assert said.startswith("kafkashark: column, character ")
    assert (text, caret) == ("  request.acts", "          ^")


def test_filter(good: Run, shop: Path) -> None:
    rows = good("dissect", shop, "-T", "ndjson", "-Y", "kafka.api_key == 12").rows
    assert [(r["correlation_id"], r["kind"]) for r in rows] == [
        (6, "request"),
        (6, "response"),
        (7, "request"),
    ]


def test_raw_tokens_are_messages(good: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    connection = (
        wire.connect().syn().client(cli_traffic.request_frame(17, 0, 1, mechanism="GSSAPI"))
    )
    connection.broker(cli_traffic.response_frame(17, 0, 1, mechanisms=["GSSAPI"]))
    connection.client(b"\0\0\0\x03abc").broker(b"\0\0\0\0")
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    lines = good("dissect", path).lines
    assert [line.split()[6:] for line in lines[2:]] == [
        ["SaslToken", "request"],
        ["SaslToken", "response", "2.000", "ms"],
    ]
    assert "\nSASL token, request: " in good("dissect", path, "-V").out
    row = good("dissect", path, "-T", "ndjson").rows[2]
    assert (row["api"], row["api_key"], row["correlation_id"], row["body"]) == (
        "SaslToken",
        None,
        None,
        None,
    )
    assert json.dumps(row)


def test_fields_of_all_messages_as_parquet(good: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "fields.parquet"
    good("dissect", shop, "-T", "parquet", "-o", file)
    table = polars.read_parquet(file)
    rows = good("dissect", shop, "-T", "ndjson").rows
    assert sorted(table["packet"].unique().to_list()) == [row["packet"] for row in rows]
    assert table.filter(polars.col("path") == "topic_data.partition_data.index")[
        "value"
    ].to_list() == [3, 3, 0]
    problems = table.filter(polars.col("problem").is_not_null())
    assert problems.select("path", "offset").rows() == [("group_id", 15)]
    assert problems["problem"][0].startswith("Heartbeat v4: length 126")


def test_fields_of_filtered_messages(good: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "fields.parquet"
    good("dissect", shop, "-T", "parquet", "-o", file, "-Y", "api == Metadata")
    assert polars.read_parquet(file)["api"].cast(str).unique().to_list() == ["Metadata"]


def test_parquet_without_messages(good: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "fields.parquet"
    good("dissect", shop, "-T", "parquet", "-o", file, "-Y", "api == LeaveGroup")
    assert polars.read_parquet_schema(file).names()[-1] == "problem"
    assert len(polars.read_parquet(file)) == 0


def test_standard_input_is_read_in_columns(good: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Path(__file__).parents[3] / "captures" / "librdkafka-transactions.pcap"
    from_file = good("dissect", capture, "-T", "ndjson").out
    windows: list[object] = []

    class Window(message_rows.TableWindow):
        def __post_init__(self) -> None:
            super().__post_init__()
            windows.append(self)

    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", 1)
    monkeypatch.setattr(message_windows, "TableWindow", Window)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(capture.read_bytes())))
    assert good("dissect", "-", "-T", "ndjson").out == from_file.replace(str(capture), "-")
    assert windows


FRAME_TIMES = ("frame.number", "frame.time", "frame.time_epoch", "frame.time_relative")


def test_times_of_frames_are_those_of_tshark(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    words = [word for name in FRAME_TIMES for word in ("-e", name)]
    try:
        status, out, _ = run("dissect", "captures/demo.pcap", "-T", "fields", *words)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert status == 0
    first = "4\tNov 21, 2026 10:46:31.909369000 CET\t1795254391.909369000\t0.000919000"
    assert out.splitlines()[0] == first
    if (tshark := shutil.which("tshark")) is not None:
        command = [tshark, "-r", "captures/demo.pcap", "-T", "fields", *words]
        environment = {**os.environ, "TZ": "Europe/Berlin"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert set(out.splitlines()) <= set(done.stdout.splitlines())


def test_seconds_since_the_epoch_filter(run: Run) -> None:
    later, by_date = (
        run("pairs", "captures/demo.pcap", "-T", "ndjson", "-Y", text)[1]
        for text in ("frame.time_epoch >= 1795254396", 'frame.time >= "2026-11-21 09:46:36Z"')
    )
    assert later == by_date
    assert later


@pytest.mark.parametrize(
    "layout",
    [
        ("header=y", "separator=,"),
        ("separator=/s", "quote=d"),
        ("quote=s", "occurrence=f"),
        ("aggregator=;", "occurrence=a"),
        ("occurrence=l", "separator=|"),
    ],
)
def test_layouts_of_fields_are_those_of_tshark(layout: tuple[str, ...], run: Run) -> None:
    words = ["-T", "fields", "-e", "frame.number", "-e", "tcp.stream", "-e", "kafka.api_key"]
    words += [word for each in layout for word in ("-E", each)]
    status, out, _ = run("dissect", "captures/demo.pcap", "-c", "3", *words)
    assert status == 0
    separator = next((each[-1] for each in layout if each.startswith("separator=")), "\t")
    separator = " " if "separator=/s" in layout else separator
    quote = '"' if "quote=d" in layout else "'" if "quote=s" in layout else ""
    cells = [("4", "0", "18"), ("6", "0", "18")]
    if "header=y" in layout:
        assert out.splitlines()[0] == separator.join(words[3:8:2])
        out = out.partition("\n")[2]
    for line, expected in zip(out.splitlines(), cells, strict=False):
        shown = [f"{quote}{each}{quote}" for each in expected]
        assert line.split(separator)[:2] == shown[:2]


def test_unknown_layouts_are_refused(run: Run) -> None:
    for text in ("separator", "separator=", "separator=ab", "header=yes", "bom=y", "quote=x"):
        done = run("dissect", "captures/demo.pcap", "-T", "fields", "-e", "api", "-E", text)
        assert (done.status, done.out) == (2, "")
        assert f"not {text!r}" in done.err
    done = run("dissect", "captures/demo.pcap", "-E", "header=y")
    assert done.err == "kafkashark: -E goes with -T fields\n"
