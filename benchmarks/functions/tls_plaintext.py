"""Decryption of TLS records, and search for the sequence number in a connection."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

from benchmarks.timing import KAFKASHARK, Row, call_us, process
from dissector.tls.cipher_suites import SUITES, CipherSuite
from dissector.tls.key_log import KeyLog
from dissector.tls.key_schedule import expand_label
from dissector.tls.tls_connection import TlsConnection
from tools.record.steady import write

LARGE_BYTES, SMALL_BYTES = 16_384, 300
SEGMENT_BYTES = 1448
TOTAL_BYTES = 8 << 20

LARGE_TARGET = 200e6
"""Bytes of plaintext per second."""

SMALL_TARGET = 100_000
"""Records per second."""

FAR_SEQUENCE = 10_000_000
FAR_TARGET_S = 10.0

_RANDOM = b"r" * 32


PACKETS = 250_000
PAIRS_TARGET = 1 / 2.5
"""Time of `pairs` on plaintext, divided by that on the same traffic in TLS."""

TURNS = 5


def rows(folder: Path) -> Iterator[Row]:
    """Time decryption and search, and a command on TLS against the same traffic in plaintext."""
    yield _pairs(folder)
    for number in (0x1301, 0x1302, 0x1303):
        suite = SUITES[number]
        yield _decryption(suite, LARGE_BYTES, LARGE_TARGET / LARGE_BYTES)
        yield _decryption(suite, SMALL_BYTES, SMALL_TARGET)
    for number in (0x1302, 0x1304, 0x1303):
        yield _search(SUITES[number])


def _pairs(folder: Path) -> Row:
    plain, encrypted, keylog = (folder / name for name in ("plain.pcap", "tls.pcap", "tls.keylog"))
    write(plain, PACKETS)
    write(encrypted, PACKETS, keylog=keylog)
    output = str(folder / "pairs.ndjson")
    commands = [
        (*KAFKASHARK, "pairs", str(capture), "-T", "ndjson", "-o", output, *options)
        for capture, options in ((plain, ()), (encrypted, ("--keylog", str(keylog))))
    ]
    # In turns, so that other load on the machine has the same effect on both.
    turns = [[process(each, runs=1).cpu_s for each in commands] for _ in range(TURNS)]
    plain_s, tls_s = (min(each) for each in zip(*turns, strict=True))
    figures = f"{tls_s:.2f} s against {plain_s:.2f} s"
    ratio = plain_s / tls_s
    return Row("pairs -T ndjson, TLS 1.3, processor", "in plain", ratio, figures, PAIRS_TARGET)


def _decryption(suite: CipherSuite, size: int, target: float) -> Row:
    count = min(TOTAL_BYTES // size, 10_000)
    keys, stream = _stream(suite, size, count, 0)
    segments = [stream[at : at + SEGMENT_BYTES] for at in range(0, len(stream), SEGMENT_BYTES)]
    seconds = call_us(partial(_decrypt, keys, segments, (count - 1) * size)) / 1e6
    figures = f"{count * size / seconds / 1e6:.0f} MB/s, {count / seconds:,.0f} records/s"
    what = f"TLS records of {size:,} bytes, {suite.name}"
    return Row(what, f"{target:,.0f} records/s", count / seconds / target, figures, 1.0)


def _search(suite: CipherSuite) -> Row:
    """Time the entry into a connection without any captured beginning."""
    keys, stream = _stream(suite, SMALL_BYTES, 3, FAR_SEQUENCE - 4)
    begun = time.perf_counter()
    _decrypt(keys, [stream], 0)
    seconds = time.perf_counter() - begun
    what = f"entry at record {FAR_SEQUENCE:,}, {suite.name}"
    return Row(what, f"{FAR_TARGET_S:.0f} s", FAR_TARGET_S / seconds, f"{seconds:.4f} s", 1.0)


def _stream(suite: CipherSuite, size: int, count: int, first: int) -> tuple[KeyLog, bytes]:
    """Return key log and records of a TLS 1.3 client."""
    secret = b"s" * (48 if suite.hash_name == "sha384" else 32)
    keys = KeyLog()
    keys.add(f"CLIENT_TRAFFIC_SECRET_0 {_RANDOM.hex()} {secret.hex()}".encode())
    key = expand_label(suite.hash_name, secret, b"key", suite.key_bytes)
    number = int.from_bytes(expand_label(suite.hash_name, secret, b"iv", 12), "big")
    aead = {"gcm": AESGCM, "chacha20": ChaCha20Poly1305, "ccm": AESCCM}[suite.mode](key)
    header = struct.pack(">BHH", 23, 0x0303, size + 17)
    content = bytes(range(256)) * (size // 256 + 1)
    inner = content[:size] + b"\x17"
    records = [
        header + aead.encrypt((number ^ sequence).to_bytes(12, "big"), inner, header)
        for sequence in range(first, first + count)
    ]
    return keys, b"".join(records)


def _decrypt(keys: KeyLog, segments: list[bytes], least: int) -> None:
    connection = TlsConnection(keys)
    plain = 0
    for packet, segment in enumerate(segments):
        for each in connection.feed(0, segment, packet, packet):
            plain += each.length or 0
    if plain < least or not plain:
        raise AssertionError(f"{plain:,} bytes of plaintext of {least:,}")
