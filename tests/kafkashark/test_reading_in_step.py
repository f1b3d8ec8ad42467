"""What looks at the reading between windows finds it as the last window left it, with any jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conform.public import judge_windows, select_rules_by_name
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.reading.reader import Options
from timeline.timeline import Timeline

CAPTURE = Path(__file__).parents[2] / "captures/demo.pcap"


def _judge(capture: Capture, windows: Iterator[Window]) -> None:
    judge_windows(select_rules_by_name("F05", ()), capture, windows)


def _follow(capture: Capture, windows: Iterator[Window]) -> None:
    assert list(Timeline(capture).events(windows))


def _packets_at_windows(
    use: Callable[[Capture, Iterator[Window]], None], jobs: int
) -> list[tuple[int, int]]:
    """Return the packets and connections that were read when each window was asked for."""
    capture = Capture([str(CAPTURE)], Options(window_bytes=8_000, jobs=jobs))
    found = []

    def windows() -> Iterator[Window]:
        for window in capture.windows():
            yield window
            assert capture.reading is not None
            found.append((capture.reading.packets, len(capture.reading.streams.connections)))

    use(capture, windows())
    return found


@pytest.mark.thinned(2)
@pytest.mark.parametrize("use", [_follow, _judge])
def test_no_window_is_read_ahead(use: Callable[[Capture, Iterator[Window]], None]) -> None:
    in_step = _packets_at_windows(use, 1)
    assert len(in_step) > 10
    assert _packets_at_windows(use, 4) == in_step
