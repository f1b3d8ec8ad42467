from __future__ import annotations

import numpy as np
import pytest

from dissector.engine.correlation.both_paths.correlator_rows import Entry
from dissector.engine.correlation.fast_path.linked_lists import (
    LIST_HEAD,
    MAX_STEPS,
    NOT_FOUND,
    TOO_FAR,
    find_request,
)
from dissector.kernel.named_rows import RowArray, dtype_of, rows_of


@pytest.mark.parametrize(
    ("waiting", "wanted", "found"),
    [
        (0, 0, NOT_FOUND),
        (5, 0, LIST_HEAD),
        (5, 3, 2),
        (MAX_STEPS, -1, NOT_FOUND),
        (MAX_STEPS + 1, MAX_STEPS - 1, MAX_STEPS - 2),
        (MAX_STEPS + 1, MAX_STEPS, TOO_FAR),
        (10_000, -1, TOO_FAR),
    ],
)
def test_number_of_compared_requests_is_bounded(waiting: int, wanted: int, found: int) -> None:
    entries: RowArray = np.zeros(waiting, dtype_of(Entry))
    entries["correlation_id"] = np.arange(waiting)
    entries["next"] = np.arange(waiting) + 1
    entries["next"][-1:] = -1
    assert find_request(rows_of(entries, Entry), 0 if waiting else -1, wanted) == found
