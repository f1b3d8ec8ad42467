"""The round-trip times of the second reader are tshark's, where tshark has them."""

from __future__ import annotations

import subprocess
from decimal import Decimal
from pathlib import Path
from shutil import which
from typing import NamedTuple

import pytest

from tests.corpus import each_capture
from tests.oracle.rows.plain_tcp import connections_of

FIELDS = ("frame.number", "tcp.stream", "initial_rtt", "acks_frame", "ack_rtt")


class Analysis(NamedTuple):
    """What tshark says of a packet; times in ns."""

    stream: str
    initial_rtt: int | None
    acks: int | None
    rtt: int | None


def analyses(capture: Path) -> dict[int, Analysis]:
    """Return tshark's analysis of each packet."""
    command = ["tshark", "-r", str(capture), "-T", "fields"]
    for name in FIELDS:
        command += ["-e", name if "." in name else f"tcp.analysis.{name}"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for line in lines:
        number, stream, initial, acks, rtt = line.split("\t")
        found[int(number)] = Analysis(
            stream, _nanoseconds(initial), int(acks) if acks else None, _nanoseconds(rtt)
        )
    return found


def _nanoseconds(seconds: str) -> int | None:
    return int(Decimal(seconds) * 10**9) if seconds else None


@pytest.mark.long
@pytest.mark.skipif(which("tshark") is None, reason="tshark is not installed")
@each_capture("oracle")
def test_round_trips_are_those_of_tshark(path: Path) -> None:
    theirs = analyses(path)
    initial = {each.stream: each.initial_rtt for each in theirs.values() if each.initial_rtt}
    compared = shaken = 0
    for connection in connections_of(path):
        for each in (each for side in connection.sides for each in side.round_trips):
            analysis = theirs[each.acked]
            if analysis.acks == each.sent:
                compared += 1
                assert analysis.rtt == each.time_ns, each
            else:
                # Acknowledged later, together with newer bytes.
                assert analysis.rtt is None or analysis.rtt <= each.time_ns, each
        halves = [side.handshake for side in connection.sides]
        if None not in halves:
            acked = connection.sides[1].round_trips[0].acked
            shaken += 1
            assert sum(half for half in halves if half) == initial.get(theirs[acked].stream, 0)
    assert compared > 0 or not theirs
    assert shaken > 0 or not initial
