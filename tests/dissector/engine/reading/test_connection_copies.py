"""Connections that a capture holds twice are recognised, and counted once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dissector import open_capture
from dissector.cli import main
from dissector.engine.reading.capture import Capture, Options
from dissector.engine.reading.connection_rows import connection_rows
from dissector.engine.reading.notices import reading_notices
from tests.default_frames import request, response
from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.tcp_captures import Packet, Wire, WireConnection, write

REPRO = Path(__file__).parents[5] / "shared" / "repro" / "real"
ISN = 123_456_789, 2**32 - 300
CLIENT, NAT, BROKER = "10.0.0.1", "192.168.7.7", "10.0.0.2"
METADATA, MINUTE_NS = 3, 60_000_000_000


def talk(connection: WireConnection, count: int = 3) -> None:
    for number in range(count):
        connection.client(heartbeat(number)).broker(beat(number))


def interleaved(*wires: Wire, delay_ns: int = 1_000) -> list[Packet]:
    """Return the packets of several points of a network: each sees a packet after the others."""
    packets = [
        replace(packet, time_ns=packet.time_ns + number * delay_ns)
        for number, wire in enumerate(wires)
        for packet in wire.packets
    ]
    return sorted(packets, key=lambda each: each.time_ns)


def point(*, begun: bool = True, count: int = 3, **ends: object) -> Wire:
    """Return what one point of a network sees of a connection."""
    wire = Wire()
    connection = wire.connect(**{"isn": ISN, **ends})  # type: ignore[arg-type]
    if begun:
        connection.syn()
    talk(connection, count)
    connection.fin()
    return wire


def read(packets: Sequence[Packet], folder: Path, **options: object) -> Capture:
    write(folder / "a.pcap", packets)
    capture = Capture([str(folder / "a.pcap")], Options(**options))  # type: ignore[arg-type]
    capture.count = sum(len(window.exchanges) for window in capture.windows())  # type: ignore[attr-defined]
    return capture


def copies(capture: Capture) -> list[int | None]:
    assert capture.reading is not None
    return [row["copy_of"] for row in connection_rows(capture.reading)]


NATTED = {"hosts": (NAT, BROKER), "port": 61_000}
SEEN_TWICE = {
    "source NAT": ({}, NATTED),
    "target NAT": ({}, {"hosts": (CLIENT, "172.16.0.9"), "broker_port": 30_092}),
    "two VLANs": ({"vlan": 7}, {"vlan": 8}),
    "two VLANs, midway": ({"vlan": 7, "begun": False}, {"vlan": 8, "begun": False}),
    "three points": ({}, NATTED, {"vlan": 5}),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", SEEN_TWICE)
@pytest.mark.parametrize("window_bytes", [1, 1 << 20])
def test_copies_count_once(name: str, window_bytes: int, tmp_path: Path) -> None:
    points = [point(**ends) for ends in SEEN_TWICE[name]]
    capture = read(interleaved(*points), tmp_path, window_bytes=window_bytes)
    assert capture.count == 3  # type: ignore[attr-defined]
    assert copies(capture) == [None] + [0] * (len(points) - 1)
    assert capture.reading is not None
    (notice,) = reading_notices(capture.reading)
    assert notice.startswith("1 connection is a copy" if len(points) == 2 else "2 connections are")
    kept = read(interleaved(*points), tmp_path, keep_copies=True, window_bytes=window_bytes)
    assert kept.count == 3 * len(points)  # type: ignore[attr-defined]
    assert copies(kept) == [None] * len(points)


def test_times_of_the_network_are_those_without_copies(tmp_path: Path) -> None:
    """Of a connection between copies too: its rows keep what was measured at them."""
    other = point(isn=(ISN[0] + 7, ISN[1]), port=50_001)
    begin_ns = other.packets[0].time_ns
    other.packets[:] = [
        replace(each, time_ns=4 * each.time_ns - 3 * begin_ns) for each in other.packets
    ]
    one, twice = [point(), other], [point(), point(**NATTED), other]
    rows = [
        [(each.server_ms, each.network_ms) for each in read(interleaved(*wires), tmp_path)]
        for wires in (one, twice)
    ]
    assert rows[0] == rows[1]
    assert None not in rows[0][0]


OTHERS = {
    "the client's number only": ({}, {**NATTED, "isn": (ISN[0], ISN[1] - 1)}),
    "the broker's number only": ({}, {**NATTED, "isn": (ISN[0] + 1, ISN[1])}),
    "numbers of made captures": ({"isn": (1000, 2000)}, {**NATTED, "isn": (1000, 2000)}),
    "another tenant's": (
        {"vlan": 7, "begun": False},
        {"vlan": 8, "begun": False, "isn": (ISN[0] + (1 << 21), ISN[1])},
    ),
    "one side near": (
        {"vlan": 7, "begun": False},
        {"vlan": 8, "begun": False, "isn": (ISN[0], ISN[1] - (1 << 21))},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_connections_alike_are_no_copies(name: str, tmp_path: Path) -> None:
    points = [point(**ends) for ends in OTHERS[name]]
    capture = read(interleaved(*points), tmp_path)
    assert capture.count == 6  # type: ignore[attr-defined]
    assert copies(capture) == [None, None]
    assert capture.reading is not None
    assert list(reading_notices(capture.reading)) == []


BEHIND = {"hosts": (NAT, BROKER), "port": 61_000, "isn": (ISN[0] + 7, ISN[1] + 7)}
SIMILAR = {
    "before and behind a proxy": (BEHIND, 100, 1_000_000, 1),
    "few bytes, as clients begin": (BEHIND, 3, 1_000_000, 0),
    "a client of the same host": ({**BEHIND, "hosts": (CLIENT, BROKER)}, 100, 1_000_000, 0),
    "a client some time later": (BEHIND, 100, 60_000_000, 0),
}


@pytest.mark.parametrize("name", SIMILAR)
def test_similar_connections_count_with_a_notice(name: str, tmp_path: Path) -> None:
    ends, count, delay_ns, notices = SIMILAR[name]
    points = point(count=count), point(count=count, **ends)
    capture = read(interleaved(*points, delay_ns=delay_ns), tmp_path)
    assert capture.count == 2 * count  # type: ignore[attr-defined]
    assert capture.reading is not None
    found = list(reading_notices(capture.reading))
    assert len(found) == notices
    assert all("1 connection carries as many bytes" in each for each in found)


def test_the_same_numbers_at_another_time_are_no_copy(tmp_path: Path) -> None:
    later = interleaved(point(), point(**NATTED), delay_ns=MINUTE_NS + 1)
    assert copies(read(later, tmp_path)) == [None, None]
    sooner = interleaved(point(), point(**NATTED), delay_ns=MINUTE_NS)
    assert copies(read(sooner, tmp_path)) == [None, 0]


def test_many_connections_with_copies_and_without(tmp_path: Path) -> None:
    inside, outside = Wire(), Wire()
    for number in range(40):
        isn = 100_000 + number * 7_919, 2**31 + number
        talk(inside.connect(50_000 + number, isn=isn).syn())
        if number % 3:
            talk(outside.connect(60_000 + number, hosts=(NAT, BROKER), isn=isn).syn())
        else:
            outside.now_ns = inside.now_ns
    found = read(interleaved(inside, outside), tmp_path)
    assert found.count == 40 * 3  # type: ignore[attr-defined]
    assert sum(each is not None for each in copies(found)) == sum(n % 3 > 0 for n in range(40))


def test_python_and_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.pcap", interleaved(point(), point(**NATTED)))
    assert len(list(open_capture(path))) == 3
    assert len(list(open_capture(path, keep_copies=True))) == 6
    for words, count in (([], 3), (["--keep-copies"], 6), ([], 3)):
        assert main(["pairs", path, "-T", "ndjson", *words]) == 0
        out, err = capsys.readouterr()
        assert len(out.splitlines()) == count
        assert ("1 connection is a copy of others" in err) == (count == 3)


def test_exported_and_redacted_captures_hold_copies(tmp_path: Path) -> None:
    """Copies have the same secrets, which a redacted capture must not show."""
    wires = Wire(), Wire()
    for wire, hosts in zip(wires, ((CLIENT, BROKER), (NAT, BROKER)), strict=True):
        connection = wire.connect(hosts=hosts, isn=ISN).syn()
        body = request(METADATA, 9, 1, topics=[{"name": "salaries-of-everyone"}])
        connection.client(body).broker(response(METADATA, 9, 1)).fin()
    path = write(tmp_path / "a.pcap", interleaved(*wires))
    assert Path(path).read_bytes().count(b"salaries-of-everyone") == 2
    for words, count in (([], 2), (["--redact"], 0)):
        out = tmp_path / "out.pcap"
        assert main(["export", path, "-o", str(out), *words]) == 0
        assert out.read_bytes().count(b"salaries-of-everyone") == count
        kept = list(open_capture(out, keep_copies=True))
        assert [each.status for each in kept] == ["answered"] * 2
        out.unlink()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["docker_any_snat.pcap", "aws_mirror_two_enis.pcap"])
def test_captures_as_people_have_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = REPRO / name
    if not path.exists():
        pytest.skip("the capture is not here")
    assert main(["pairs", str(path), "-T", "ndjson"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["status"] for row in rows] == ["answered"] * 121
    main(["conform", str(path), "-T", "ndjson"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    findings = {row["rule"] for row in rows if row["section"] == "finding"}
    assert "G05" in findings  # once as well
    assert not {"T11", "L01"} & findings
