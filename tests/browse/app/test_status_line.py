from __future__ import annotations

import pytest

from browse.app.status_line import PacketRate


def test_the_rate_is_that_of_the_last_seconds() -> None:
    rate = PacketRate()
    assert rate.at(10.0, 0) is None
    assert rate.at(10.1, 50) is None
    assert rate.at(11.0, 500) == pytest.approx(500)
    for tenth in range(1, 41):
        found = rate.at(11.0 + tenth / 10, 500 + 10 * tenth)
    assert found == pytest.approx(100)
    assert rate.at(25.0, 900) == pytest.approx(0)
