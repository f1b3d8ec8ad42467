"""Decryption of runs of records equals decryption one by one."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import pytest

from dissector import Capture, Options
from dissector.engine.reading.plaintext_rows import UNKNOWN_GAP_BYTES
from dissector.engine.reading.reader import PLAINTEXT_BEGINS
from dissector.tls.key_log import KeyLog
from dissector.tls.tls_summary import TlsSummary
from tests.dissector.tls.endpoints import CLIENT, SERVER, Flight, Party, decrypt, pieces
from tests.dissector.tls.maker import ALERT, DATA, Maker
from tests.tcp_captures import Wire, pcap_file

Bytes = tuple[int, bytes | None, int]
"""Side, bytes or a gap, and their number."""


def read(flights: list[Flight], keylog: Path, window_bytes: int) -> tuple[list[Bytes], TlsSummary]:
    """Read flights, a packet each, as a capture; return the plaintext in order, and the summary."""
    wire = Wire()
    connection = wire.connect(40_000).syn()
    for side, data in flights:
        connection.send(side, data)
    options = Options(
        stdin=io.BytesIO(pcap_file(wire.packets)),
        window_bytes=window_bytes,
        keylogs=(str(keylog),),
    )
    capture, taken = Capture(["-"], options), list[Bytes]()

    def take(number: int, side: int, data: bytes | None, length: int) -> None:
        if length == PLAINTEXT_BEGINS:
            taken.clear()
        elif length:
            taken.append((side, data, length))

    capture.tap = take
    for _ in capture:
        pass
    assert capture.reading is not None
    (summary,) = capture.reading.decryption.summaries()
    return taken, summary


def cut(source: random.Random, data: bytes) -> Iterator[bytes]:
    while data:
        size = source.choice((1, 4, 5, 6, 100, 700, 1448, 1448, 1448))
        yield data[:size]
        data = data[size:]


def made_traffic(source: random.Random, suite: int) -> Maker:
    """Send data of all sizes, and sometimes other records."""
    made = Maker(suite)
    made.handshake()
    for _ in range(120):
        side, size = source.randrange(2), source.choice((0, 1, 50, 300, 4_000, 16_384))
        what = source.random()
        if what < 0.05:
            made.update(side)
        elif what < 0.08:
            made.send(side, ALERT, b"\1\0")
        elif what < 0.12:
            made.send(side, DATA, b"", padding=source.randrange(300))
        else:
            made.send(side, DATA, source.randbytes(size), padding=source.choice((0, 0, 0, 40)))
    return made


def compare(flights: list[Flight], keys: list[str], keylog: Path, window_bytes: int) -> TlsSummary:
    """Compare the reading of a capture with a connection fed packet by packet."""
    keylog.write_text("".join(f"{line}\n" for line in keys))
    connection, out = decrypt(KeyLog([keylog]), flights)
    found, summary = read(flights, keylog, window_bytes)
    unknown = UNKNOWN_GAP_BYTES
    assert found == [
        (each.side, each.data, unknown if each.length is None else each.length) for each in out
    ]
    assert astuple(summary) == astuple(connection.summary())
    return summary


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("damage", [0.0, 0.01])
@pytest.mark.parametrize("window_bytes", [1 << 20, 5_000])
def test_key_updates_padding_alerts_and_wrong_tags(
    tmp_path: Path, seed: int, damage: float, window_bytes: int
) -> None:
    source = random.Random(seed)
    made = made_traffic(source, (0x1301, 0x1302, 0x1303, 0x1304)[seed])
    flights = pieces(made.flights, lambda data: cut(source, data))
    for at, (side, data) in enumerate(flights):
        if at > 30 and source.random() < damage:
            flights[at] = side, bytes([*data[:-1], data[-1] ^ 1])
    summary = compare(flights, made.lines, tmp_path / "keys.log", window_bytes)
    assert (summary.failed > 0) == (damage > 0)
    assert summary.decrypted > 30


@pytest.mark.parametrize(
    "name", ["AES128-SHA", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"]
)
def test_ciphers_of_tls12(tmp_path: Path, name: str) -> None:
    source = random.Random(name)
    party = Party(tmp_path, version="TLSv1_2", ciphers=f"{name}:@SECLEVEL=0")
    sizes = (source.choice((1, 50, 4_000, 40_000)) for _ in range(60))
    sent = party.connect([(source.randrange(2), source.randbytes(size)) for size in sizes])
    flights = pieces(sent.flights, lambda data: cut(source, data))
    lines = party.key_log.read_text().splitlines()
    summary = compare(flights, lines, tmp_path / "again.log", 1 << 20)
    assert summary.plain_bytes == len(sent.sent(CLIENT)) + len(sent.sent(SERVER))
