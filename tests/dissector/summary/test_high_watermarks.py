"""High watermarks from the tape equal those of decoded bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dissector import open_capture
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Window
from dissector.summary.high_watermarks import HighWatermarks, read_marks

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = (
    "demo.pcap",
    "kafka4-java-clients.pcap",
    "kafka39-sweep-data.pcap",
    "kafka4-errors.pcap",
    "librdkafka-group-rebalance.pcap",
)


def windows(name: str) -> Iterator[tuple[Window, HighWatermarks]]:
    """Yield windows with the high watermarks of each."""
    capture = open_capture(CAPTURES / name)
    for window in capture.windows():
        reading = capture.reading
        assert reading is not None

        def exchange(row: int, window: Window = window) -> Exchange:
            assert capture.reading is not None
            return capture.reading.exchange(window.exchanges, row, capture.names)

        found = HighWatermarks()
        found.add(read_marks(window.exchanges, exchange))
        yield window, found
        # Truncated messages are left to the codecs: the same result without the tape.
        table = window.exchanges
        sizes = np.where(table.api_key == 1, table.response.size + 1, table.response.size)
        cut = replace(table, response=replace(table.response, size=sizes))
        by_codecs = HighWatermarks()
        by_codecs.add(read_marks(cut, exchange))
        assert by_codecs == found


@pytest.mark.parametrize("name", NAMES)
def test_high_watermarks_of_captures(name: str) -> None:
    expected = {}
    capture = open_capture(CAPTURES / name)
    for each in capture:
        body = each.response.body if each.response is not None and each.api == "Fetch" else None
        for topic in (body.responses or ()) if body is not None else ():
            for part in topic.partitions:
                if not part.error_code and part.high_watermark >= 0:
                    key = topic.get("topic") or topic.get("topic_id"), part.partition_index
                    expected[key] = part.high_watermark
    found = {key: end for _, each in windows(name) for key, end in each.by_partition.items()}
    assert found == expected
    assert found
