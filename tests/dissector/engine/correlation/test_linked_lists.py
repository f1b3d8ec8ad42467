from __future__ import annotations

import numpy as np
import pytest

from dissector.engine.correlation.linked_lists import FOREMOST, MOST_STEPS, TOO_FAR, UNFOUND, find
from dissector.engine.correlation.state_columns import ID, NEXT, NODE_WIDTH


@pytest.mark.parametrize(
    ("waiting", "wanted", "found"),
    [
        (0, 0, UNFOUND),
        (5, 0, FOREMOST),
        (5, 3, 2),
        (MOST_STEPS, -1, UNFOUND),
        (MOST_STEPS + 1, MOST_STEPS - 1, MOST_STEPS - 2),
        (MOST_STEPS + 1, MOST_STEPS, TOO_FAR),
        (10_000, -1, TOO_FAR),
    ],
)
def test_a_response_is_compared_with_so_many_requests(
    waiting: int, wanted: int, found: int
) -> None:
    nodes = np.zeros((waiting, NODE_WIDTH), np.int64)
    nodes[:, ID] = np.arange(waiting)
    nodes[:, NEXT] = np.arange(waiting) + 1
    nodes[-1:, NEXT] = -1
    assert find(nodes, 0 if waiting else -1, wanted) == found
