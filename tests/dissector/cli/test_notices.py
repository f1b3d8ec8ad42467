"""What was not read of a capture is on stderr, in the statistics, and in verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dissector.capture.handmade_links import vxlan_gpe
from tests.dissector.capture.handmade_packets import (
    enhanced,
    ethernet,
    interface,
    ipv4,
    pcap,
    section,
    udp,
)
from tests.dissector.cli.conftest import Run
from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.tcp_captures import Wire, write

NOT_READ = "1 packet of link type 147 (USER0), which is not read"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A capture of two interfaces, of which one has a link type that is not read."""
    wire = Wire()
    wire.connect().syn().client(heartbeat(1)).broker(beat(1)).fin()
    frames = b"".join(enhanced(each.data, each.time_ns // 1000) for each in wire.packets)
    path = tmp_path / "mixed.pcapng"
    other = enhanced(b"x" * 60, wire.packets[-1].time_ns // 1000, 1)
    path.write_bytes(section() + interface(1) + interface(147) + frames + other)
    return path


def test_unread_link_types_in_each_answer(run: Run, mixed: Path) -> None:
    for command in ("pairs", "dissect", "records", "timeline"):
        done = run(command, mixed)
        assert (done.status, done.err) == (0, f"kafkashark: {NOT_READ}\n"), command
    assert "packets passed over: link type 147 (USER0) is not read   1" in run("stats", mixed).out
    assert f"Not judged\n  {NOT_READ}\n" in run("conform", mixed).out


def test_cut_packets_are_named(run: Run, tmp_path: Path) -> None:
    wire = Wire()
    wire.connect().syn().client(*map(heartbeat, range(9))).broker(*map(beat, range(9)))
    path = tmp_path / "cut.pcap"
    write(path, [each.cut(54) for each in wire.packets])
    assert "every packet was cut at 54 bytes: there is no payload" in run("pairs", path).err


def test_tunnels_on_other_ports(run: Run, tmp_path: Path) -> None:
    wire = Wire()
    wire.connect().syn().client(heartbeat(1)).broker(beat(1))
    packets = [
        (each.time_ns, ethernet(ipv4(udp(vxlan_gpe(each.data, 0), (9, 10800)), protocol=17)))
        for each in wire.packets
    ]
    path = tmp_path / "tunnel.pcap"
    path.write_bytes(pcap(packets))
    assert run("pairs", path, "-T", "ndjson").out == ""
    rule = ("--decode-as", "udp.port==10800,vxlan")
    assert len(run("pairs", path, "-T", "ndjson", *rule).rows) == 1
    assert len(run("streams", path, "-T", "ndjson", *rule).rows) == 1
    out = tmp_path / "out.pcapng"
    assert "1 exchanges on 1 connections: 7 of 7" in run("export", path, "-o", out, *rule).out
    wrong = run("pairs", path, "--decode-as", "tcp.port==9092,kafka")
    assert (wrong.status, wrong.err) == (
        2,
        "kafkashark: --decode-as takes udp.port; Kafka on a TCP port: --port N\n",
    )
