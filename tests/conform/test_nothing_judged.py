"""Reasons for verdicts without judged rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform.nothing_judged import nothing_judged_reason
from conform.registry.verdict import Verdict
from dissector import Capture, Options
from tests.conform.verdicts import F03

CAPTURES = Path(__file__).parents[2] / "captures"


def test_no_rules_were_selected() -> None:
    assert nothing_judged_reason(Verdict([]), None) == "the selected rules apply to captures"


def test_the_most_frequent_reason_for_a_broker() -> None:
    verdict = Verdict([F03])
    verdict.tallies["F03"].unjudged.update({"this": 1, "that": 2})
    assert nothing_judged_reason(verdict, None) == "that"


@pytest.mark.parametrize(
    ("name", "ports", "why"),
    [
        ("kafka4-aiokafka-tls.pcap", (), "5 TLS connections, none readable: --keylog"),
        ("demo.pcap", (1, 2), "none of 44 TCP connections speaks Kafka on port 1, 2"),
        ("demo.pcap", (), "the capture contains nothing that the selected rules check"),
    ],
)
def test_the_contents_of_a_capture_as_reason(name: str, ports: tuple[int, ...], why: str) -> None:
    capture = Capture([CAPTURES / name], Options(ports=frozenset(ports)))
    for _ in capture.windows():
        pass
    assert nothing_judged_reason(Verdict([F03]), capture.reading).startswith(why)
