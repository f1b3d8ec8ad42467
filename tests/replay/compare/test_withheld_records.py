"""Records below the reported watermarks but missing from the response."""

from __future__ import annotations

from typing import Any

import pytest

from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.mapping.reader_accounts import ReaderAccount
from tests.replay.support.outcomes import outcome
from tests.replay.support.produce_messages import batches


def fetched(records: bytes, high: int = 4, stable: int = -1) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": high,
        "last_stable_offset": stable,
        "records": records,
    }
    return {"responses": [{"topic": "orders", "partitions": [partition]}]}


def account(live: dict[str, Any], max_bytes: int = 1 << 20) -> ReaderAccount:
    """The account of a reader after a response with fewer than four records."""
    ids = IdMap()
    request_body = {"max_bytes": max_bytes}
    compare_outcome(
        outcome("Fetch", 11, fetched(batches(0, 1, 2, 3)), live, request=request_body), ids
    )
    (found,) = ids.readers.with_missing()
    return found


def missing_ranges(found: ReaderAccount) -> list[str]:
    return [str(each) for poll in found.polls for each in poll.missing]


@pytest.mark.parametrize(
    ("live", "lacking"),
    [
        (fetched(batches(0, 1)), ["2 to 3"]),
        (fetched(b""), ["0 to 3"]),
        (fetched(batches(0), high=3), ["1 to 2"]),
        (fetched(batches(0), stable=2), ["1"]),
        (fetched(batches(0, 1), high=2), []),
    ],
)
def test_withheld_records_end_at_the_watermarks(live: dict[str, Any], lacking: list[str]) -> None:
    assert missing_ranges(account(live)) == lacking


def test_a_full_response_withholds_nothing() -> None:
    assert not missing_ranges(account(fetched(batches(0, 1)), max_bytes=len(batches(0, 1, 2))))
    assert missing_ranges(account(fetched(batches(0, 1)), max_bytes=len(batches(0, 1, 2, 3))))
