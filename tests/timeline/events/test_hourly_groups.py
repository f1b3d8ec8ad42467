"""Exchanges by hour and connection, in that order."""

from __future__ import annotations

import numpy as np

from timeline.events.fetch_counts import hourly_groups


def test_groups_are_in_the_order_of_hours_and_connections() -> None:
    hours, connections = np.array([473_001, 473_000, 473_001, 473_000]), np.array([2, 7, 0, 7])
    found, group = hourly_groups(hours, connections)
    assert found == [473_000, 473_001, 473_001]
    assert group.tolist() == [2, 0, 1, 0]
