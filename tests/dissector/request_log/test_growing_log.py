"""A log that still grows is read as it comes, from a pipe, with the same exchanges."""

from __future__ import annotations

import gzip
import io
import os
from typing import Any

import numpy as np

from dissector.public import Exchange, open_capture
from dissector.request_log.log_accounts import AccountBuilder, LogAccounts
from tests.corpus import FOLDER
from tests.dissector.request_log.log_samples import line

LOG = gzip.decompress((FOLDER / "kafka4-sasl-request-log.log.gz").read_bytes())
"""It fits into a pipe."""

NUMBERED = ("connection", "capture", "request_packet", "response_packet")
"""Columns of the place in a capture: packets are in the order of times of each portion."""


def told(exchange: Exchange) -> dict[str, Any]:
    return {name: cell for name, cell in exchange.row().items() if name not in NUMBERED}


def test_exchanges_come_before_the_log_ends() -> None:
    lines = LOG.splitlines(keepends=True)
    middle = len(LOG) // 2  # within a line
    reader, writer = os.pipe()
    with io.FileIO(reader) as pipe, io.FileIO(writer, "w") as log:
        log.write(LOG[:middle])
        capture = open_capture("-", stdin=pipe)  # type: ignore[arg-type]
        found, problems = [], []
        is_open = True
        for window in capture.windows():
            exchanges = list(capture.exchanges_of(window))
            problems += [each.what for _, each in window.problems]
            if exchanges and is_open:
                assert len(exchanges) < len(lines)
                log.write(LOG[middle:] + line()[:300].encode() + b"\n")
                log.close()
                is_open = False
            found += list(map(told, exchanges))
    expected = list(map(told, open_capture(LOG)))
    assert len(expected) > 10
    assert any(each["queue_ms"] is not None for each in expected)
    order = "request_time_ns", "client", "correlation_id"
    found, expected = (
        sorted(rows, key=lambda row: [str(row[name]) for name in order])
        for rows in (found, expected)
    )
    assert found == expected
    assert problems == [
        f"line {len(lines) + 1}: the message is cut off, or mixed with another line: it is lost"
    ]


def test_other_pipes_are_no_logs() -> None:
    """A capture and other text in a pipe are read as ever."""
    data = (FOLDER / "kafka4-errors.pcap").read_bytes()
    reader, writer = os.pipe()
    with io.FileIO(reader) as pipe:
        with io.FileIO(writer, "w") as file:
            file.write(data[:30_000])
        assert len(list(open_capture("-", stdin=pipe))) > 10  # type: ignore[arg-type]


def test_the_last_accounts_are_kept() -> None:
    builder, joined, written = AccountBuilder(), LogAccounts(), []
    for portion in range(4):
        for number in range(3):
            at = 3 * portion + number
            written.append((f"User:{at % 2}", at * 1_000_000, list(range(at % 3))))
            value = {"principal": f"User:{at % 2}", "totalTimeMs": float(at)}
            builder.add(at, value, written[-1][2])
        packets = np.array([10, 11, 12]) + 10 * portion
        joined = joined.followed_by(builder.build(packets), most=5)
        builder = builder.successor()
    assert joined.packets.tolist() == [31, 32, 40, 41, 42]
    rows = joined.rows_of(joined.packets)
    principals = joined.texts("principal", rows)
    assert [
        (principals.texts[code], ns, joined.record_bytes(row))
        for row, code, ns in zip(
            rows.tolist(), principals.codes, joined.durations("broker_ms", rows), strict=True
        )
    ] == written[-5:]
