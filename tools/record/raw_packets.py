"""Minimal pcap reading and conversion, enough to check and truncate our own captures."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
}


class RawPacket(NamedTuple):
    """A packet's data and the file offset of its record."""

    start: int
    data: bytes


def walk(pcap: bytes) -> Iterator[RawPacket]:
    """
    Yield the packets of a classic pcap, without a truncated last one.

    Raises:
        ValueError: The data is not a classic pcap.
    """
    order = _MAGICS.get(pcap[:4])
    if order is None:
        raise ValueError("not a classic pcap")
    start = 24
    while start + 16 <= len(pcap):
        (size,) = struct.unpack_from(order + "I", pcap, start + 8)
        if start + 16 + size > len(pcap):
            return
        yield RawPacket(start, pcap[start + 16 : start + 16 + size])
        start += 16 + size


def count(path: Path) -> int:
    """Count the packets of a classic pcap or pcapng file, gzipped or not."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return _count_pcapng(data)
    return sum(1 for _ in walk(data))


def _count_pcapng(data: bytes) -> int:
    order = "<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    start, packets = 0, 0
    while start + 12 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, start)
        packets += kind == 6
        start += max(size, 12)
    return packets


def convert(path: Path, form: str) -> Path:
    """
    Convert a classic pcap; the new file replaces the old one.

    Args:
        path: A classic pcap.
        form: `pcapng` or `gz`; `pcap` and `nanosecond pcap` are left as recorded.
    """
    if form == "gz":
        zipped = path.with_name(path.name + ".gz")
        zipped.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
        return zipped
    if form == "pcapng":
        other = path.with_suffix(".pcapng")
        editcap = shutil.which("editcap")
        if editcap is None:
            raise FileNotFoundError("editcap is needed to write pcapng")
        subprocess.run([editcap, "-F", "pcapng", path, other], check=True)
        path.unlink()
        return other
    return path
