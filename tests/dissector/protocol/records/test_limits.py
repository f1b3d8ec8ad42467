from __future__ import annotations

import pytest

from dissector.protocol.records.limits import Budget, Limits

LIMITS = Limits(max_decompressed_bytes=1000, max_ratio=10, free_bytes=50)


@pytest.mark.parametrize(
    ("compressed", "allowed"),
    [(0, 50), (1, 50), (6, 60), (100, 1000), (1_000_000, 1000)],
)
def test_output_is_bounded_by_ratio_and_by_size(compressed: int, allowed: int) -> None:
    assert Budget(LIMITS).output_for(compressed) == allowed


def test_the_budget_shrinks_by_decompressed_bytes() -> None:
    budget = Budget(LIMITS)
    budget.output_bytes -= 990
    assert budget.output_for(100) == 10
