"""Times in tshark's formats."""

from __future__ import annotations

import pytest

from dissector.view.text.time_style import TimeStyle

AT_NS = 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    ("style", "text"), [("a", "22:13:20.123456789Z"), ("ad", "2023-11-14 22:13:20.123456789Z")]
)
def test_the_clock_in_utc(style: str, text: str) -> None:
    assert TimeStyle(style, lambda: 0, utc=True).text(AT_NS) == text
