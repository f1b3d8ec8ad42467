"""A filter gives the same rows for an export as for the whole capture."""

from __future__ import annotations

import gzip
import json
import struct
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dissector.cli import main
from tests import tcp_captures
from tests.conform import mutations
from tests.corpus import CAPTURES, each_capture, fast_and_long
from tests.dissector.capture.handmade_packets import block, interface, section
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run
from tools.record.manifest import keylogs

FILTERS = (
    "",
    "api == Metadata",
    "errors",
    "status != answered",
    "problems",
    "api in {Produce, Fetch} and latency_ms > 5",
    "api == Fetch and topic",
)

NUMBERED = ("capture", "connection", "network_ms", "server_ms")
"""
Columns that are others in an export; packet numbers come in pairs as others add them.

An export lacks acknowledgements of other exchanges, from which the RTT is known.
"""


def rows(run: Run, capture: Path, display_filter: str, keys: list[str]) -> list[str]:
    where = ["-Y", display_filter] if display_filter else []
    done = run("pairs", capture, "-T", "ndjson", *where, *keys)
    assert done.status == 0
    kept = [
        {name: row[name] for name in row if name not in NUMBERED and "packet" not in name}
        for row in done.rows
    ]
    return sorted(json.dumps(row) for row in kept)


def exported(run: Run, capture: Path, out: Path, display_filter: str, *words: str) -> str:
    where = ["-Y", display_filter] if display_filter else []
    status, text, err = run("export", capture, "-o", out, *where, *words)
    assert (status, "other rows" in err) == (0, False)
    return text


def assert_same(run: Run, capture: Path, folder: Path, display_filter: str) -> None:
    keys = [word for each in keylogs(capture) for word in ("--keylog", str(each))]
    out = folder / "out.pcapng"
    exported(run, capture, out, display_filter, *keys)
    assert rows(run, out, display_filter, keys) == rows(run, capture, display_filter, keys)


@pytest.mark.thinned(3)
@each_capture("export", display_filter=FILTERS)
def test_export_has_the_same_rows(
    path: Path, display_filter: str, run: Run, tmp_path: Path
) -> None:
    assert_same(run, path, tmp_path, display_filter)


DAMAGES = (
    mutations.lose,
    mutations.begin_later,
    mutations.end_early,
    mutations.cut,
    mutations.swap,
    mutations.repeat,
    mutations.spoil,
)
SMALL = [path for path in CAPTURES if path.suffix == ".pcap" and path.stat().st_size < 150_000]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", fast_and_long(range(14), range(14, 210)))
def test_export_of_damaged_captures_has_the_same_rows(seed: int, run: Run, tmp_path: Path) -> None:
    chance = Random(seed)
    head, recorded = mutations.packets_of(chance.choice(SMALL))
    recorded = DAMAGES[seed % len(DAMAGES)](recorded, chance)
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(mutations.file_of(head, recorded))
    assert_same(run, damaged, tmp_path, chance.choice(FILTERS))


def heartbeats(count: int) -> tcp_captures.Wire:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    for number in range(count):
        connection.client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, number, group_id="g"))
        connection.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, number))
    connection.fin()
    return wire


def test_only_packets_of_matching_exchanges_are_exported(run: Run, tmp_path: Path) -> None:
    """The handshake, request and response, and the end; or the whole connection."""
    capture, out = tmp_path / "a.pcapng", tmp_path / "out.pcapng"
    wire = heartbeats(50)
    tcp_captures.write(capture, wire.packets)
    text = exported(run, capture, out, "correlation_id == 20")
    few = 3 + 4 + 3  # data is acknowledged
    assert text == f"1 exchanges on 1 connections: {few} of {len(wire.packets)} packets\n"
    assert len(run("pairs", out, "-T", "ndjson").rows) == 1
    text = exported(run, capture, out, "correlation_id == 20", "--connections")
    assert f"{len(wire.packets)} of {len(wire.packets)} packets" in text
    assert len(run("pairs", out, "-T", "ndjson").rows) == 50


def test_retransmissions_are_exported(run: Run, tmp_path: Path) -> None:
    capture, out = tmp_path / "a.pcap", tmp_path / "out.pcapng"
    every = heartbeats(9).packets
    at = 3 + 4 * 4  # the request 4
    tcp_captures.write(capture, [*every[: at + 1], every[at], *every[at + 1 :]])
    exported(run, capture, out, "correlation_id == 4")
    sides = run("streams", out, "-T", "ndjson").rows[0]
    assert sides["retransmitted_a"] + sides["retransmitted_b"] == len(every[at].payload)


@pytest.mark.parametrize("number", ["connection == 2", "connection == 0 and api == Heartbeat"])
def test_a_filter_by_numbers_of_the_capture(
    number: str, run: Run, shop: Path, tmp_path: Path
) -> None:
    """Packet numbers differ in the export, so it needs another filter."""
    out = tmp_path / "out.pcapng"
    exported(run, shop, out, number)
    found = rows(run, shop, number, [])
    assert found
    assert set(found) <= set(rows(run, out, "", []))


def test_topic_names_are_exported(run: Run, shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    exported(run, shop, out, "api == Fetch and topic == orders")
    found = run("pairs", out, "-T", "ndjson", "-Y", "api == Fetch").rows
    assert [row["topics"] for row in found] == [["orders"]]


def test_several_captures(run: Run, shop: Path, tmp_path: Path) -> None:
    """Pcap and pcapng, compressed or not, are one section each."""
    second, third, out = tmp_path / "b.pcapng", tmp_path / "c.pcap.gz", tmp_path / "out.pcapng"
    later = 3_600_000_000_000
    tcp_captures.write(second, _heartbeats_at(later))
    plain = tmp_path / "c.pcap"
    tcp_captures.write(plain, _heartbeats_at(2 * later))
    third.write_bytes(gzip.compress(plain.read_bytes()))
    captures = [shop, second, third]
    assert run("export", *captures, "-o", out, "-Y", "api == Heartbeat").status == 0

    def found(*names: Path) -> list[Any]:
        listed = run("pairs", *names, "-T", "ndjson", "-Y", "api == Heartbeat").rows
        return [(row["client"], row["request_time_ns"], row["correlation_id"]) for row in listed]

    assert sorted(found(out), key=str) == sorted(found(*captures), key=str)


def _heartbeats_at(later_ns: int) -> list[tcp_captures.Packet]:
    return [replace(each, time_ns=each.time_ns + later_ns) for each in heartbeats(5).packets]


def test_an_empty_export_is_a_capture(run: Run, shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert exported(run, shop, out, "api == Vote").startswith("0 exchanges on 0 connections: 0 of")
    assert run("pairs", out, "-T", "ndjson").rows == []


def test_tls_secrets_are_exported(run: Run, tmp_path: Path) -> None:
    """Decryption Secrets Blocks are copied, to decrypt the export without a key log."""
    capture = next(path for path in CAPTURES if path.name == "kafka4-java-tls13.pcap.gz")
    [keylog] = keylogs(capture)
    inside, plain = tmp_path / "inside.pcapng", tmp_path / "plain.pcap"
    plain.write_bytes(gzip.decompress(capture.read_bytes()))
    secrets = keylog.read_bytes()
    blocks = [section(), block(10, struct.pack("<II", 0x544C534B, len(secrets)) + secrets)]
    blocks.append(interface())
    for each in mutations.packets_of(plain)[1]:
        seconds, micros = struct.unpack("<II", each.time)
        ticks = seconds * 1_000_000 + micros
        sizes = len(each.data), each.size
        head = struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, *sizes)
        blocks.append(block(6, head + each.data))
    inside.write_bytes(b"".join(blocks))
    out = tmp_path / "out.pcapng"
    exported(run, inside, out, "api == Produce")
    found = rows(run, out, "api == Produce", [])
    assert found == rows(run, inside, "api == Produce", [])
    assert found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "export requires an output file: -o OUT.pcapng"),
        ("-o shop", "is read (CAPTURE); -o would overwrite it"),
    ],
)
def test_invalid_combinations_of_options(words: str, message: str, run: Run, shop: Path) -> None:
    status, out, err = run("export", shop, *words.replace("shop", str(shop)).split())
    assert (status, out) == (2, "")
    assert message in err


def test_standard_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "-", "-o", str(tmp_path / "out.pcapng")]) == 2
    assert "-: export reads a capture several times" in capsys.readouterr().err
