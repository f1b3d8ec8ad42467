"""Exchanges with clients as a capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import dissect
from dissector.errors import UsageError
from dissector.protocol.apis import KEYS
from serve.traffic.traffic_writer import TrafficWriter
from tests import default_frames as frames

ADDRESSES = (("127.0.0.1", 40000), ("127.0.0.1", 9092)), (("::1", 40001, 0, 0), ("::1", 9092, 0, 0))


def test_exchanges_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "out.pcapng"
    writer = TrafficWriter(path)
    key = KEYS["Metadata"]
    for number, addresses in enumerate(ADDRESSES):
        for correlation_id in (1, 2):
            request = frames.request(key, 9, correlation_id)[4:]
            response = frames.response(key, 9, correlation_id)[4:]
            writer.write(number, addresses, (correlation_id * 10**9, request), response)
    writer.write(0, ADDRESSES[0], (5 * 10**9, frames.request(key, 9, 3)[4:]), None)
    writer.close()
    found = [(each.connection, each.correlation_id, each.status) for each in dissect(path)]
    assert sorted(found) == [
        (0, 1, "answered"),
        (0, 2, "answered"),
        (0, 3, "unanswered"),
        (1, 1, "answered"),
        (1, 2, "answered"),
    ]


def test_an_unwritable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        TrafficWriter(tmp_path / "none" / "out.pcapng")
