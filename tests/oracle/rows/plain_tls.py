"""The plaintext of TLS connections, decrypted by tshark with the key log beside the capture."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.oracle.rows.plain_tcp import Chunk, Connection


def decrypt(connections: list[Connection], capture: Path, keylog: Path) -> None:
    """Replace the bytes of all connections by their plaintext."""
    encrypted = {
        chunk.packet: (side, chunk)
        for connection in connections
        for side in connection.sides
        for chunk in side.chunks
    }
    for side, _ in encrypted.values():
        side.chunks = []
    ports = {connection.sides[1].endpoint.rpartition(":")[2] for connection in connections}
    for packet, plaintext in plaintexts(capture, keylog, ports):
        side, chunk = encrypted[packet]
        side.chunks.append(Chunk(packet, chunk.time_ns, plaintext))


def plaintexts(capture: Path, keylog: Path, ports: set[str]) -> list[tuple[int, bytes]]:
    """Return the plaintext of the records that each packet completes, as (packet, bytes)."""
    layers = [f"{layer}.port=={port},{inner}" for port in ports for layer, inner in LAYERS]
    command = ["tshark", "-r", str(capture), "-o", f"tls.keylog_file:{keylog}"]
    command += [word for layer in layers for word in ("-d", layer)]
    command += ["-Y", "data", "-T", "fields", "-e", "frame.number", "-e", "data.data"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split("\t") for line in lines]
    return [(int(packet), bytes.fromhex(data.replace(",", ""))) for packet, data in found]


LAYERS = (("tcp", "tls"), ("tls", "data"))
"""What tshark reads the payload of ports as: else it guesses, and reads some as other protocols."""
