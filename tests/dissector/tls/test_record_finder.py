from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, ChaCha20Poly1305

from dissector.tls.key_log import KeyLog
from dissector.tls.sequence_search import LastByte
from dissector.tls.tls_connection import TlsConnection
from dissector.tls.tls_summary import Plaintext, Reason
from tests.dissector.tls.endpoints import CLIENT, SERVER, Flight, Party, content, decrypt
from tests.dissector.tls.maker import DATA, Maker

PACKET_BYTES = 1448
SOURCE = random.Random(4)
BIG = SOURCE.randbytes(1_000_000)

SUITES_12 = ("AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305", "AES128-SHA", "AES128-CCM8")


def segments(flights: list[Flight]) -> list[Flight]:
    return [
        (side, data[at : at + PACKET_BYTES])
        for side, data in flights
        for at in range(0, len(data), PACKET_BYTES)
    ]


def decrypt_with_loss(
    keys: KeyLog, packets: list[Flight], lost: set[int], is_length_known: bool = True
) -> tuple[TlsConnection, list[Plaintext]]:
    connection = TlsConnection(keys)
    out = []
    gap = [0, 0]
    for packet, (side, data) in enumerate(packets):
        if packet in lost:
            gap[side] += len(data)
            continue
        if gap[side]:
            length = gap[side] if is_length_known else None
            out += connection.gap(side, length, packet, packet)
            gap[side] = 0
        out += connection.feed(side, data, packet, packet)
    return connection, out + connection.finish()


def laid_out(out: list[Plaintext], side: int, size: int) -> bytearray:
    """Plaintext at its position, with zeros for gaps."""
    at, laid = 0, bytearray(size)
    for each in out:
        if each.side == side:
            assert each.length is not None
            if each.data is not None:
                laid[at : at + each.length] = each.data
            at += each.length
    assert at <= size
    return laid


@pytest.mark.parametrize("run", [1, 2, 13, 60, 200])
def test_tls13_continues_at_the_right_position_after_lost_packets(tmp_path: Path, run: int) -> None:
    party = Party(tmp_path)
    recorded = party.connect([(SERVER, BIG[at : at + 50_000]) for at in range(0, len(BIG), 50_000)])
    packets = segments(recorded.flights)
    for first in (10, 101, 350):
        lost = set(range(first, first + run))
        connection, out = decrypt_with_loss(party.keys(), packets, lost)
        lost_bytes = sum(len(packets[each][1]) for each in lost)
        assert len(content(out, SERVER)) > len(BIG) - lost_bytes - 2 * 16_500
        laid = laid_out(out, SERVER, len(BIG))
        assert all(laid[at] in (0, BIG[at]) for at in range(0, len(BIG), 7))
        assert laid[-1000:] == BIG[-1000:]
        assert connection.summary().reason is None


@pytest.mark.parametrize("name", SUITES_12)
def test_tls12_continues_after_lost_packets(tmp_path: Path, name: str) -> None:
    party = Party(tmp_path, version="TLSv1_2", ciphers=f"{name}:@SECLEVEL=0")
    recorded = party.connect([(SERVER, BIG[at : at + 3000]) for at in range(0, 600_000, 3000)])
    packets = segments(recorded.flights)
    lost = set(range(100, 160))
    for is_length_known in (True, False):
        _, out = decrypt_with_loss(party.keys(), packets, lost, is_length_known)
        assert len(content(out, SERVER)) > 600_000 - 60 * PACKET_BYTES - 2 * 3100
        assert content(out, SERVER)[-3000:] == BIG[597_000:600_000]


@pytest.mark.parametrize("suite", [0x1301, 0x1303, 0x1304])
def test_many_gaps_of_unknown_length(suite: int) -> None:
    made = Maker(suite)
    made.handshake()
    for number in range(200):
        made.data(CLIENT, bytes([number & 255]) * 300)
    source = random.Random(3)
    packets = segments(made.flights)
    lost = {each for each in range(5, len(packets)) if source.random() < 0.2}
    connection, out = decrypt_with_loss(made.keys(), packets, lost, is_length_known=False)
    kept = len(packets) - len(lost) - 4
    assert len(content(out, CLIENT)) == kept * 300
    assert connection.summary().resyncs > 25


@pytest.mark.parametrize("suite", [0x1302, 0x1303, 0x1305])
def test_a_lost_key_update(suite: int) -> None:
    made = Maker(suite)
    made.handshake()
    made.data(CLIENT, b"before" * 10)
    first = len(made.flights)
    made.update(CLIENT)
    made.data(CLIENT, b"lost" * 10)
    made.data(CLIENT, b"after" * 10)
    packets = list(made.flights)
    for lost in ({first}, {first, first + 1}):
        _, out = decrypt_with_loss(made.keys(), packets, lost)
        assert content(out, CLIENT).endswith(b"after" * 10)


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_any_one_lost_packet_of_the_handshake(tmp_path: Path, version: str) -> None:
    party = Party(tmp_path, version=version, client_name="alice")
    recorded = party.connect([(n % 2, BIG[n * 100 : n * 100 + 100]) for n in range(20)])
    packets = segments(recorded.flights)
    is_13 = version == "TLSv1_3"
    for lost in range(len(packets) - 20):
        connection, out = decrypt_with_loss(party.keys(), packets, {lost})
        has_hello = packets[lost][1][:1] == b"\x16" and packets[lost][1][5] in (1, 2)
        if is_13 or not has_hello:
            assert content(out, CLIENT) == recorded.sent(CLIENT)
            assert content(out, SERVER) == recorded.sent(SERVER)
        else:
            assert not content(out, CLIENT)
            assert connection.summary().reason is not None


@pytest.mark.thinned(2)
@pytest.mark.parametrize("suite", [0x1301, 0x1302, 0x1303, 0x1304, 0x1305])
def test_a_connection_captured_midway(suite: int) -> None:
    made = Maker(suite)
    made.handshake()
    made.flights.clear()
    made.plain[0].clear()
    if suite in (0x1301, 0x1302):
        made.skip_update(CLIENT)
        made.sequences = [9_000_000_000, 4_000_000]
    else:
        made.sequences = [3000, 9000]
    for number in range(20):
        made.data(number % 2, bytes([number]) * 200)
    packets = [(side, data) for side, data in made.flights]
    packets[0] = (CLIENT, packets[0][1][7:])
    keys = made.keys()
    for seed in range(100, 102):
        for line in Maker(suite, seed).lines + Maker(0x1302, seed + 100).lines:
            keys.add(line.encode())
    connection, out = decrypt(keys, packets)
    # One record is incomplete; ciphers that need a search need two records of a side.
    late = 200 if suite in (0x1301, 0x1302) else 400
    assert content(out, CLIENT) == made.plain[CLIENT][late:]
    assert len(content(out, SERVER)) >= len(made.plain[SERVER]) - 200
    assert connection.client == 0
    summary = connection.summary()
    assert (summary.version, summary.reason) == ("TLS 1.3", None)
    assert [each.length for each in out if each.data is None] == [None, None]


@pytest.mark.parametrize("is_chacha20", [True, False])
@pytest.mark.parametrize("size", [1, 15, 63, 64, 65, 200, 4097])
def test_the_right_number_is_always_a_candidate(is_chacha20: bool, size: int) -> None:
    source = random.Random(size)
    key, iv = source.randbytes(32), source.randbytes(12)
    aead = ChaCha20Poly1305(key) if is_chacha20 else AESCCM(key)
    first, sequence = (1 << 32) - 3000, (1 << 32) + 2999
    nonce = (int.from_bytes(iv, "big") ^ sequence).to_bytes(12, "big")
    inner = source.randbytes(size) + b"\x17"
    body = aead.encrypt(nonce, inner, struct.pack(">BHH", 23, 0x0303, size + 17))
    found = list(LastByte(key, iv, body, 16, is_chacha20).candidates(first, 6000))
    assert found == sorted(found)
    assert sequence in found
    assert len(found) < 6000 / 64 * 2


def test_secrets_of_other_connections_do_not_decrypt() -> None:
    made = Maker()
    made.handshake()
    made.flights.clear()
    made.sequences = [1000, 1000]
    for number in range(20):
        made.data(number % 2, bytes(200))
    keys = Maker(seed=77).keys()
    connection, out = decrypt(keys, made.flights)
    assert not out
    assert connection.summary().reason is Reason.NO_HELLOS


@pytest.mark.parametrize("name", ["AES256-GCM-SHA384", "AES128-SHA"])
def test_tls12_without_hellos_is_abandoned_early(tmp_path: Path, name: str) -> None:
    party = Party(tmp_path, version="TLSv1_2", ciphers=f"{name}:@SECLEVEL=0")
    recorded = party.connect([(n % 2, BIG[n * 100 : n * 100 + 100]) for n in range(40)])
    keys = party.keys()
    for seed in range(2):
        for line in Maker(0x1302, seed).lines:
            keys.add(line.encode())
    connection, out = decrypt(keys, recorded.flights[-30:])
    assert not out
    assert connection.summary().reason is Reason.NO_HELLOS


def test_hostile_headers_after_a_gap_take_bounded_time() -> None:
    made = Maker()
    made.handshake()
    made.data(CLIENT, b"seen")
    connection = TlsConnection(made.keys())
    for side, data in made.flights:
        connection.feed(side, data, 0, 0)
    connection.gap(CLIENT, 10**9, 0, 0)
    junk = bytes([DATA, 3, 3, 0, 20]) * 20_000
    for packet in range(20):
        assert not connection.feed(CLIENT, junk, packet, packet)
    assert connection.summary().resyncs == 0
