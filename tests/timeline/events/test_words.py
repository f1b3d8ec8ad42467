"""Words of event texts."""

from __future__ import annotations

import pytest

from timeline.events.words import duration, listed, member_name, partitions_text, ranges


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (400_000, "0.4 ms"),
        (310_000_000, "310 ms"),
        (2_950_000_000, "2.95 s"),
        (250_000_000_000, "4 min 10 s"),
        (-1, "0.0 ms"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert duration(ns) == text


def test_names_of_members() -> None:
    uuid = "1f57eab9-0000-4000-8000-0123456789ab"
    assert member_name(f"billing-{uuid}") == "billing-1f57eab9"
    assert member_name(f"billing-{uuid}", "static") == "static"


def test_partitions() -> None:
    assert ranges([3, 1, 2, 7]) == "1-3,7"
    assert partitions_text({"b": [0], "a": [2, 0], "c": []}) == "a 0,2, b 0"
    assert partitions_text({}) == "nothing"


def test_long_lists() -> None:
    assert listed(map(str, range(10))) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
