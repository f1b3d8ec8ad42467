from __future__ import annotations

import csv
import io
import os
import threading
from pathlib import Path

import polars
import pytest

from dissector.cli.declared.row_options import ROW_FORMATS
from dissector.engine.reading.connection_rows import COLUMNS
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run


def test_one_row_per_connection_of_any_protocol(good: Run, shop: Path) -> None:
    rows = good("streams", shop, "-T", "ndjson").rows
    assert all(list(row) == list(COLUMNS) for row in rows)
    columns = [
        (r["connection"], r["network"], r["a"], r["b"], r["speaks"], r["client"], r["ended"])
        for r in rows
    ]
    assert columns == [
        (0, "", "10.0.0.1:50000", "10.0.0.2:9092", "kafka", "a", None),
        (1, "", "10.0.0.1:40000", "10.0.0.2:80", "other", None, "fin"),
        (2, "vlan 7", "[fd00::1]:50001", "[fd00::2]:9092", "kafka", "a", "fin"),
    ]


def test_counts(good: Run, shop: Path) -> None:
    row = good("streams", shop, "-T", "ndjson").rows[1]
    assert (row["packets_a"], row["packets_b"]) == (6, 4)
    assert (row["bytes_a"], row["bytes_b"]) == tuple(map(len, cli_traffic.HTTP))
    assert (row["first_time_ns"], row["last_time_ns"]) == (
        cli_traffic.at_ns(29),
        cli_traffic.at_ns(38),
    )


def test_gaps_retransmissions_and_start_of_decoding(good: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect()
    beats = [
        cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, n, group_id="g" * 50) for n in range(6)
    ]
    # The capture begins in the middle of the first request; the third was lost.
    connection.client(beats[0][20:], beats[1])
    connection.retransmit(0, 0, 10)
    at = len(wire.packets)
    connection.client(beats[2])
    del wire.packets[at : at + 2]
    connection.client(*beats[3:]).fin()
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    (row,) = good("streams", path, "-T", "ndjson").rows
    assert row["speaks"] == "kafka"
    assert row["entered_a"] == row["skipped_a"] == len(beats[0]) - 20
    assert (row["gaps_a"], row["gap_bytes_a"]) == (1, len(beats[2]))
    assert (row["retransmissions_a"], row["retransmitted_a"]) == (1, 10)


def test_tls_is_reported(run: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    hello = b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + bytes(194)
    wire.connect(broker_port=9093).syn().client(hello).fin()
    done = run("streams", tcp_captures.write(tmp_path / "a.pcap", wire.packets), "-T", "ndjson")
    (row,) = done.rows
    assert row["speaks"] == "tls"
    assert (done.status, done.err.count("\n")) == (0, 1), "all bytes are encrypted"


def test_formats_agree(good: Run, shop: Path, tmp_path: Path) -> None:
    expected = good("streams", shop, "-T", "ndjson").rows
    header, *rows = csv.reader(io.StringIO(good("streams", shop, "-T", "csv").out, newline=""))
    assert header == list(COLUMNS)
    assert rows == [["" if v is None else str(v) for v in row.values()] for row in expected]
    file = tmp_path / "out.parquet"
    good("streams", shop, "-T", "parquet", "-o", file)
    assert polars.read_parquet(file).to_dicts() == expected
    assert len(good("streams", shop).lines) == 4


@pytest.mark.parametrize("form", ROW_FORMATS)
def test_without_connections(good: Run, tmp_path: Path, form: str) -> None:
    path = tcp_captures.write(tmp_path / "none.pcap", [])
    file = tmp_path / "out"
    good("streams", path, "-T", form, "-o", file)
    if form == "parquet":
        assert polars.read_parquet(file).columns == list(COLUMNS)
    else:
        assert len(file.read_text().splitlines()) == (0 if form == "ndjson" else 1)


def test_filter_keeps_connections_with_a_matching_exchange(good: Run, shop: Path) -> None:
    rows = good("streams", shop, "-T", "ndjson", "-Y", "topic == old").rows
    assert [row["connection"] for row in rows] == [2]
    assert good("streams", shop, "-T", "ndjson", "-Y", "api == Vote").out == ""


def test_sort(good: Run, shop: Path) -> None:
    rows = good("streams", shop, "-T", "ndjson", "--sort", "bytes_a").rows
    assert [row["connection"] for row in rows] == [1, 2, 0]


def test_write(good: Run, shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "streams"
    done = good("streams", shop, "-T", "ndjson", "--write", folder)
    assert done == good("streams", shop, "-T", "ndjson")
    sides = _sent(cli_traffic.shop())
    # The body of an orphan may be secret, as its API is unknown.
    sides["0-b.bin"] = sides["0-b.bin"].replace(
        b"\x0c\0\0\0M" + bytes(8), b"\x0c\0\0\0M" + b"*" * 8
    )
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == sides
    assert len(sides) == 6


def test_write_of_matching_connections(good: Run, shop: Path, tmp_path: Path) -> None:
    good("streams", shop, "--write", tmp_path, "-Y", "topic == old")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["2-a.bin", "2-b.bin"]


def test_write_of_a_connection_to_a_broker_that_is_not_recognised(
    good: Run, tmp_path: Path
) -> None:
    """It may be a login that was damaged, or that the capture has the end of."""
    wire = tcp_captures.Wire()
    request = cli_traffic.request_frame(3, 1, 1, topics=[])
    answer = cli_traffic.response_frame(3, 1, 1, brokers=[], topics=[])
    wire.connect(50_001).syn().client(request).broker(answer)
    garbage = b"\0\0\0\x05\0\x11secret-of-alice"
    wire.connect(50_002).syn().client(garbage).broker(b"\0\0")
    wire.connect(50_003, broker_port=80).syn().client(garbage)
    capture = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    written = {}
    for words in ((), ("--show-secrets",)):
        good("streams", capture, "--write", tmp_path / "streams", *words)
        for file in (tmp_path / "streams").iterdir():
            written[file.name, *words] = file.read_bytes()
    assert written["0-a.bin",] == request
    assert written["1-a.bin",] == b"*" * len(garbage)
    assert written["2-a.bin",] == written["1-a.bin", "--show-secrets"] == garbage


def _sent(wire: tcp_captures.Wire) -> dict[str, bytes]:
    sides: dict[str, bytes] = {}
    for packet in wire.packets:
        if packet.payload:
            name = f"{packet.connection}-{'ab'[packet.side]}.bin"
            sides[name] = sides.get(name, b"") + packet.payload
    return sides


def test_files_are_deleted_when_reading_fails(run: Run, shop: Path, tmp_path: Path) -> None:
    """Their secret bytes are unknown then."""
    fifo = tmp_path / "fifo"  # checked only when read: after the first capture
    os.mkfifo(fifo)
    feeder = threading.Thread(target=fifo.write_bytes, args=(b"no capture",))
    feeder.start()
    folder = tmp_path / "streams"
    done = run("streams", shop, fifo, "--write", folder)
    feeder.join()
    assert (done.status, done.out) == (2, "")
    assert done.err == f"kafkashark: {fifo}: not a capture: text\n"
    assert list(folder.iterdir()) == []
