"""Positions of the bytes of findings in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conform.report.byte_regions import regions_of
from tests.conform.mutations import judged_file, packets_of

CAPTURES = Path(__file__).parents[3] / "captures"
MOCK = CAPTURES / "librdkafka-acks.pcap"


def test_each_finding_has_a_region() -> None:
    verdict = judged_file(MOCK)
    found = regions_of(verdict)
    assert len(found) == sum(len(kind.findings) for kind in verdict)
    data = MOCK.read_bytes()
    for finding, (start, size) in found.items():
        assert finding.frame is not None
        head, whole = finding.frame
        begin = start - (finding.span or (0, 0))[0]
        assert data[begin : begin + len(head)] == head
        assert data[begin - 4 : begin] == whole.to_bytes(4, "big")
        assert size == (finding.span[1] - finding.span[0] if finding.span else whole)


def test_regions_in_the_second_of_two_files() -> None:
    first = CAPTURES / "kafka4-librdkafka-shapes.pcap"
    verdict = judged_file(MOCK)
    before = regions_of(verdict)
    _, packets = packets_of(first)
    for kind in verdict:
        kind.findings[:] = [
            replace(each, packet=(each.packet or 0) + len(packets)) for each in kind.findings
        ]
    verdict.captures = [str(first), str(MOCK)]
    assert sorted(regions_of(verdict).values()) == sorted(before.values())


def test_a_deleted_capture_has_no_regions(tmp_path: Path) -> None:
    verdict = judged_file(MOCK)
    verdict.captures = ["-"]
    assert regions_of(verdict) == {}
    verdict.captures = [str(tmp_path / "gone.pcap")]
    assert regions_of(verdict) == {}
