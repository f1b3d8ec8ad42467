"""The streams of public captures, compared with tshark's "follow" where tshark is right."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from shutil import which

import pytest

from tests.corpus import each_part, shared_captures
from tests.dissector.capture.stage_reading import Piece, Reading

TSHARK = which("tshark")

pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")

# Different streams, by tshark's number, and why ours are right.
DIFFERS = {
    # tshark joins bytes around a cut by the snapshot length without a note.
    "PcapPlusPlus__pcapng-example.pcapng.zst": {1, 2, 3, 5, 6, 9, 10, 13},
    "zeek__retransmit-fast009.pcap": {0},
    "zeek__truncated-header.pcap": {0},
    # One direction only: tshark shows nothing behind an unacknowledged hole.
    "PcapPlusPlus__unidirectional_tcp_stream_with_missing_packet.pcap": {0},
    # Acknowledged bytes that were never captured are a gap also at the end.
    "suricata-verify__tcp-async-01__input.pcap": {0},
    "zeek__miss_end_data.pcap": {0},
    # A start without SYN, reversed: tshark loses the second segment.
    "tcpflow__test1-out-of-order.pcap": {0},
    # Overlapping fragments: the first bytes win here, the last there.
    "zeek__fragmented-4.pcap": {1},
    # Overlapping retransmissions with other bytes: the first captured win here.
    "zeek__reassembly.pcap": {0},
}

# BIG TCP, with one segment that tshark 4.0 misses.
UNSEEN = {"tcpdump__bigtcp-ipv6.pcap"}

_GAP = re.compile(rb"\[(\d+) bytes missing in capture file\]\0?")


def shark(file: Path, *words: str) -> str:
    command = [str(TSHARK), "-r", str(file), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def followed(file: Path) -> list[tuple[int, dict[str, bytes]]]:
    """Return each stream's number and, by endpoint, its sent bytes, with gaps as text."""
    numbers = {
        int(each) for each in re.findall(r"\d+", shark(file, "-T", "fields", "-e", "tcp.stream"))
    }
    words = [word for each in sorted(numbers) for word in ("-z", f"follow,tcp,raw,{each}")]
    parts = shark(file, "-q", *words).split("Follow: tcp,raw\n")[1:] if words else []
    streams = []
    for part in parts:
        number = int(part.split("tcp.stream eq ")[1].split()[0])
        nodes = re.findall(r"^Node [01]: (.*)$", part, re.MULTILINE)
        sent = dict.fromkeys(nodes, b"")
        for line in re.findall(r"^\t?[0-9a-f]+$", part, re.MULTILINE):
            sent[nodes[line.startswith("\t")]] += _GAP.sub(_gap, bytes.fromhex(line.strip()))
        streams.append((number, sent))
    return sorted(streams, key=lambda stream: stream[0])


def _gap(match: re.Match[bytes]) -> bytes:
    return b"[%s missing]" % match[1]


def flat(pieces: list[Piece]) -> bytes:
    return b"".join(each if isinstance(each, bytes) else b"[%d missing]" % each for each in pieces)


@each_part
def test_streams_of_shared_captures_equal_those_of_tshark(shared: Path, part: int) -> None:
    compared = 0
    for file in shared_captures(shared, part):
        if file.name in UNSEEN:
            continue
        reading = Reading(file)
        assert Reading(file, 1).rows == reading.rows
        assert Reading(file, one_by_one=True).rows == reading.rows
        # Reused endpoints are several streams, in the same order on both sides.
        ours = defaultdict(list)
        for connection in reading.tcp.connections:
            ends = (connection.a_text, connection.b_text)
            sent = {
                end: flat(reading.streams.get((connection.id, side), []))
                for side, end in enumerate(ends)
            }
            ours[frozenset(ends)].append(sent)
        different = set()
        for number, sent in followed(file):
            compared += 1
            if ours[frozenset(sent)].pop(0) != sent:
                different.add(number)
        assert different == DIFFERS.get(file.name, set()), file.name
        left = [each for several in ours.values() for each in several]
        # Nonsense data far from a nonsense SYN is another connection here.
        assert len(left) == (file.name == "arkime__tcpseq_synthetic.pcap"), file.name
    assert compared >= 9


EXPECTED = [
    ("PcapPlusPlus__unidirectional_tcp_stream_with_missing_packet.pcap", 0, 0, [1420, 1420, 7108]),
    ("zeek__miss_end_data.pcap", 0, 1, [2902]),
    ("tcpdump__bigtcp-ipv6.pcap", 0, 0, [79968]),
    ("tcpflow__test1-out-of-order.pcap", 0, 0, [1396, 22, 65]),
]


@pytest.mark.parametrize(("name", "connection", "side", "sizes"), EXPECTED)
def test_streams_with_errors_in_tshark(
    shared: Path, name: str, connection: int, side: int, sizes: list[int]
) -> None:
    pieces = Reading(shared / "captures/tcp" / name).streams[(connection, side)]
    assert [each if isinstance(each, int) else len(each) for each in pieces] == sizes


def test_the_first_captured_bytes_are_kept(shared: Path) -> None:
    """Each byte comes from the first packet with its sequence number."""
    file = shared / "captures/tcp/zeek__reassembly.pcap"
    fields = ["tcp.seq", "tcp.payload"]
    words = ["-Y", "tcp.srcport==2564", "-T", "fields"]
    have: dict[int, int] = {}
    for line in shark(file, *words, *(x for each in fields for x in ("-e", each))).splitlines():
        seq, payload = line.split("\t")
        for at, byte in enumerate(bytes.fromhex(payload), int(seq)):
            have.setdefault(at, byte)
    at = 1
    for piece in Reading(file).streams[(0, 0)]:
        if isinstance(piece, bytes):
            assert [have[each] for each in range(at, at + len(piece))] == list(piece)
        else:
            assert not any(each in have for each in range(at, at + piece))
        at += piece if isinstance(piece, int) else len(piece)
    assert at == max(have) + 1
