"""Whether connections across ranges are read again, or sent in shards."""

from __future__ import annotations

import pytest

from pipeline.jobs.crossing_keys import AGAIN, PART_CONNECTIONS, Carried


@pytest.mark.parametrize(
    ("cores", "connections", "share", "parts"),
    [
        (2, 300, 1, 2),
        (2, 300, 2 / AGAIN, 2),
        (2, 300, 1.9 / AGAIN, 0),
        (4, 300, 1, 4),
        (4, 300, 0.9, 0),
        (100, 300, 1, 0),
        (2, 2 * PART_CONNECTIONS, 1, 2),
        (2, 2 * PART_CONNECTIONS + 1, 1, 4),
        (2, 4 * PART_CONNECTIONS + 1, 1, 0),
    ],
)
def test_few_parts_with_most_bytes_read_again(
    cores: int, connections: int, share: float, parts: int
) -> None:
    carried = Carried(connections // 2, 4_000_000) + Carried(-(-connections // 2))
    assert carried.parts_to_read_again(cores, round(4_000_000 / share)) == parts
