"""Whether connections across ranges are read again, or sent in shards."""

from __future__ import annotations

import pytest

from pipeline.jobs.crossing_keys import AGAIN, PART_BYTES, PART_CONNECTIONS, Carried


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


@pytest.mark.parametrize(
    ("cores", "megabytes", "connections", "parts"),
    [
        (2, 0, 1, 2),
        (2, 256, 300, 2),
        (2, 257, 300, 4),
        (2, 100_000, 300, 8),
        (400, 10_000_000, 300, 1600),
        (400, 10_000_000, 1600 * PART_CONNECTIONS + 1, 2000),
    ],
)
def test_parts_do_not_grow_with_bytes_alone(
    cores: int, megabytes: int, connections: int, parts: int
) -> None:
    carried = Carried(connections, megabytes * PART_BYTES // 128)
    assert carried.parts_of_shards(cores) == parts
