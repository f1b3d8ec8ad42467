"""Responses that overlapped a change: of the value before, or of the one after."""

from __future__ import annotations

from typing import Any

import pytest

from replay.model.outcome import Verdict
from replay.order.read_write_sets import Resource
from tests.replay.support.comparison import found

PARTITION: Resource = ("partition", "orders", 0)
GROUP: Resource = ("group", "g")


def ends(offset: int) -> dict[str, Any]:
    partition = {"partition_index": 0, "offset": offset}
    return {"topics": [{"name": "orders", "partitions": [partition]}]}


@pytest.mark.parametrize(
    ("meanwhile", "live", "verdict"),
    [
        (None, 6, Verdict.DIFFERS),
        (True, 6, Verdict.EQUIVALENT),
        (True, 4, Verdict.EQUIVALENT),
        (False, 6, Verdict.EQUIVALENT),
        (False, 4, Verdict.DIFFERS),
    ],
)
def test_an_overlapping_response_may_have_the_value_before_or_after(
    meanwhile: bool | None, live: int, verdict: Verdict
) -> None:
    changed = {} if meanwhile is None else {PARTITION: meanwhile}
    assert found("ListOffsets", 5, ends(5), ends(live), overlaps=changed)[0] is verdict


def committed(offset: int, error: int = 0) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": offset, "error_code": error}
    return {"topics": [{"name": "orders", "partitions": [partition]}]}


def test_overlapping_committed_offsets_may_differ_but_not_errors() -> None:
    request_body = {"group_id": "g"}
    either: dict[str, Any] = {"request": request_body, "overlaps": {GROUP: True}}
    assert found("OffsetFetch", 5, committed(-1), committed(7), **either)[0] is Verdict.EQUIVALENT
    assert found("OffsetFetch", 5, committed(7), {"topics": []}, **either)[0] is Verdict.EQUIVALENT
    assert found("OffsetFetch", 5, {"topics": []}, committed(7), **either)[0] is Verdict.EQUIVALENT
    refused = found("OffsetFetch", 5, committed(7), committed(-1, 30), **either)
    assert refused[0] is Verdict.ERROR_CHANGED
    assert (
        found("OffsetFetch", 5, committed(-1), committed(7), request=request_body)[0]
        is Verdict.DIFFERS
    )
