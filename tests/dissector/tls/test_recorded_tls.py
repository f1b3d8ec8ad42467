"""Recorded connections of real brokers and clients, with their key logs."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dissector.engine.reading.capture import Capture
from dissector.public import open_capture
from dissector.tls.key_log import KeyLog
from dissector.tls.tls_connection import TlsConnection
from dissector.tls.tls_summary import Reason, TlsSummary
from tests.corpus import FOLDER
from tests.tcp_captures import Wire, write

NAMES = sorted(path.stem for path in FOLDER.glob("*.keylog"))

SAME = (
    "api_key", "api_version", "correlation_id", "client_id", "status",
    "request_bytes", "response_bytes", "errors", "topics", "problems",
)  # fmt: skip
"""Columns of an exchange that its bytes decide."""

Chunk = tuple[int, bytes | None, int]
Chunks = list[Chunk]
"""Side, bytes or None for a gap, and length, of one connection in order."""


def capture_of(name: str) -> Path:
    return next(FOLDER.glob(f"{name}.pcap*"))


@cache
def connections(name: str) -> dict[int, Chunks]:
    """The TLS connections of a capture."""
    found: dict[int, Chunks] = {}
    capture = Capture([capture_of(name)])
    capture.tap = lambda connection, side, data, length: found.setdefault(connection, []).append(
        (side, data, length)
    )
    for _ in capture.windows():
        pass
    return {key: chunks for key, chunks in found.items() if (chunks[0][1] or b"")[:1] == b"\x16"}


def keys_of(name: str) -> KeyLog:
    return KeyLog([FOLDER / f"{name}.keylog"])


def plain(keys: KeyLog, chunks: Chunks) -> tuple[tuple[bytes, bytes], TlsSummary]:
    """The plaintext of both sides, and the summary."""
    connection = TlsConnection(keys)
    out = []
    for packet, (side, data, length) in enumerate(chunks):
        if data is None:
            out += connection.gap(side, length, packet, packet)
        else:
            out += connection.feed(side, data, packet, packet)
    out += connection.finish()
    sides = [b"".join(each.data or b"" for each in out if each.side == side) for side in (0, 1)]
    return (sides[0], sides[1]), connection.summary()


def frames(stream: bytes) -> Iterator[bytes]:
    """Split a stream completely into Kafka frames."""
    at = 0
    while at < len(stream):
        size = int.from_bytes(stream[at : at + 4], "big")
        assert 4 <= size <= len(stream) - at - 4
        yield stream[at + 4 : at + 4 + size]
        at += 4 + size


def test_captures_with_key_logs_exist() -> None:
    assert {"kafka4-java-tls12", "kafka4-java-tls13", "kafka4-franz-go-tls12"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_connection_decrypts_to_complete_kafka_frames(name: str) -> None:
    keys = keys_of(name)
    opened = 0
    for chunks in connections(name).values():
        (client, broker), summary = plain(keys, chunks)
        assert summary.reason in (None, Reason.NO_LINE, Reason.NO_DATA)
        assert summary.failed == summary.resyncs == 0
        if summary.reason is None:
            opened += 1
            sent, answered = Counter(), Counter()
            for frame in frames(client):
                sent[frame[4:8]] += 1
            for frame in frames(broker):
                answered[frame[:4]] += 1
            assert not answered - sent
    assert opened >= len(connections(name)) - 1
    assert opened


def test_summaries_of_connections() -> None:
    shown = [
        plain(keys_of(name), chunks)[1] for name in NAMES for chunks in connections(name).values()
    ]
    assert {each.version for each in shown} >= {"TLS 1.2", "TLS 1.3"}
    assert {each.suite for each in shown} >= {
        "TLS_AES_256_GCM_SHA384",
        "TLS_RSA_WITH_AES_128_CBC_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    }
    subject = "CN=orders-service,O=Orders"
    assert {each.version for each in shown if each.client_subject == subject} == {
        "TLS 1.2",
        "TLS 1.3",
    }
    assert max(each.key_updates for each in shown) > 4


def test_resumed_connections_are_decrypted() -> None:
    name = "kafka4-kafka-python-resumption"
    keys = keys_of(name)
    shown = [plain(keys, chunks) for chunks in connections(name).values()]
    assert [(each.version, each.resumed) for _, each in shown] == [
        (version, resumed)
        for version in ("TLS 1.3", "TLS 1.2", "TLS 1.2")
        for resumed in (False, True)
    ]
    assert all(client and broker for (client, broker), _ in shown)


@pytest.mark.parametrize("name", NAMES)
def test_lost_chunks_cost_few_other_bytes(name: str) -> None:
    source = random.Random(name)
    keys = keys_of(name)
    for chunks in connections(name).values():
        whole, summary = plain(keys, chunks)
        if summary.reason is not None or len(chunks) < 18:
            continue
        at = source.randrange(12, len(chunks) - 3)
        side, _, length = chunks[at]
        damaged = [*chunks[:at], (side, None, length), *chunks[at + 1 :]]
        (client, broker), _ = plain(keys, damaged)
        total = len(whole[0]) + len(whole[1])
        assert len(client) + len(broker) >= total - length - 16_384


needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")

Piece = tuple[int, bytes]
"""Side and bytes that tshark decrypted."""


@pytest.mark.thinned(8)
@needs_tshark
@pytest.mark.parametrize("name", NAMES)
def test_plaintext_equals_that_of_tshark(name: str) -> None:
    keys = keys_of(name)
    ours = [plain(keys, chunks)[0] for chunks in connections(name).values()]
    theirs = decrypted(name, len(ours))
    assert theirs
    assert all(joined(pieces) in ours for pieces in theirs)


@pytest.mark.thinned(8)
@needs_tshark
@pytest.mark.parametrize("name", NAMES)
def test_rows_equal_those_of_the_plaintext_of_tshark(name: str, tmp_path: Path) -> None:
    """Plaintext of tshark, written as plain TCP, gives the same exchanges."""
    wire = Wire()
    for number, pieces in enumerate(decrypted(name, len(connections(name)))):
        connection = wire.connect(50_000 + number).syn()
        for side, data in pieces:
            connection.send(side, data)
        connection.fin()
    written = write(tmp_path / "plain.pcap", wire.packets)
    keylogs = [FOLDER / f"{name}.keylog"]
    ours = exchanges(open_capture(capture_of(name), keylogs=keylogs))
    theirs = exchanges(open_capture(written))
    assert sorted(theirs) == sorted(ours)


def exchanges(capture: open_capture) -> list[list[str]]:
    """The exchanges of each connection as text, without fields that differ in a copy."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for each in capture:
        messages = [message and message.body for message in (each.request, each.response)]
        found[each.connection].append(repr([getattr(each, name) for name in SAME] + messages))
    return [sorted(connection) for connection in found.values()]


def joined(pieces: list[Piece]) -> tuple[bytes, bytes]:
    """The bytes of each side."""
    client, broker = (b"".join(data for side, data in pieces if side == each) for each in (0, 1))
    return client, broker


def decrypted(name: str, streams: int) -> list[list[Piece]]:
    """The plaintext of both sides of each stream, by tshark."""
    follow = [word for number in range(streams) for word in ("-z", f"follow,tls,raw,{number}")]
    command = [
        "tshark", "-n", "-q", "-r", str(capture_of(name)), *follow,
        "-o", f"tls.keylog_file:{FOLDER / name}.keylog",
    ]  # fmt: skip
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [_pieces(part) for part in text.split("Follow: tls,raw")[1:]]


def _pieces(text: str) -> list[Piece]:
    """Parse a stream of `follow`; indented lines belong to the second sender."""
    lines = re.findall(r"^(\t?)([0-9a-f]+)$", text, re.MULTILINE)
    pieces = [(int(bool(tab)), bytes.fromhex(data)) for tab, data in lines]
    # ApiVersions has key 18; the broker may send first, a ticket.
    swapped = not any(side == 0 and data[4:6] == b"\0\x12" for side, data in pieces)
    return [(side ^ swapped, data) for side, data in pieces]
