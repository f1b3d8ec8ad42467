"""Locates the bytes of findings in the files of a capture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from conform.registry.verdict import Finding, Verdict
from dissector.capture.formats.capture_reader import read_packets
from dissector.errors import DissectorError

Region: TypeAlias = tuple[int, int]
"""Offset in the file, and number of bytes."""

_SIZE_BYTES = 4


def regions_of(verdict: Verdict) -> dict[Finding, Region]:
    """
    Return the file positions of the bytes of findings, if known.

    It is known for messages within one packet of an uncompressed file. The captures are read a
    second time, up to the last packet with a finding.
    """
    by_packet: dict[int, list[Finding]] = defaultdict(list)
    for kind in verdict:
        for finding in kind.findings:
            if finding.packet is not None and finding.frame is not None:
                by_packet[finding.packet - 1].append(finding)
    if not by_packet or "-" in verdict.captures:
        return {}
    try:
        return _find_regions(verdict.captures, by_packet)
    except DissectorError:  # a file was removed meanwhile: report the findings without locations
        return {}


def _find_regions(
    paths: Sequence[str], by_packet: dict[int, list[Finding]]
) -> dict[Finding, Region]:
    found: dict[Finding, Region] = {}
    last = max(by_packet)
    for packets in read_packets(paths):
        for number in range(packets.first, min(packets.first + len(packets), last + 1)):
            row = number - packets.first
            for finding in by_packet.get(number, ()):
                start = int(packets.start[row])
                data = packets.data[start : start + int(packets.captured[row])].tobytes()
                region = _region(finding, data, packets.position(row))
                if region and _matches_file(paths[int(packets.file[row])], finding, region):
                    found[finding] = region
        if packets.first + len(packets) > last:
            break
    return found


def _region(finding: Finding, packet: bytes, base: int) -> Region | None:
    """Return the location of a finding's bytes; `base` is the offset of the packet in its file."""
    assert finding.frame is not None
    prefix, size = finding.frame
    position = packet.find(size.to_bytes(_SIZE_BYTES, "big") + prefix)
    start, end = finding.span or (0, size)
    if position < 0 or position + _SIZE_BYTES + end > len(packet):
        return None
    return base + position + _SIZE_BYTES + start, end - start


def _matches_file(path: str, finding: Finding, region: Region) -> bool:
    """Return whether the file has the message there; a compressed file does not."""
    assert finding.frame is not None
    prefix, _ = finding.frame
    with Path(path).open("rb") as file:
        file.seek(region[0] - (finding.span or (0, 0))[0])
        return file.read(len(prefix)) == prefix
