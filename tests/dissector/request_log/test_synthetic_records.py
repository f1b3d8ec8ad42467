"""Made-up records have the logged sizes, and are valid batches."""

from __future__ import annotations

import pytest

from dissector.protocol.records import parse_records
from dissector.public import open_capture
from dissector.request_log.synthetic_records import records_of, use_synthetic_records
from tests.dissector.request_log.log_samples import exchange, line


@pytest.mark.parametrize("version", [0, 2, 3, 12])
@pytest.mark.parametrize("size", [0, 1, 80, 131, 200, 16_460, 1_000_000])
def test_a_batch_of_a_size(size: int, version: int) -> None:
    data = records_of(size, version)
    assert len(data) == size or size in (0, 1)
    for batch in parse_records(data):
        assert not batch.problems
        assert len(batch.records) == 1


def test_produce_requests_of_a_log() -> None:
    partition = {"index": 0, "recordsSizeInBytes": 167}
    data = [{"name": "orders", "partitionData": [partition]}]
    request = {"transactionalId": None, "acks": -1, "timeoutMs": 5000, "topicData": data}
    text = line(exchange(key=0, name="PRODUCE", version=9, request=request, response="")).encode()
    assert open_capture(text).records().is_empty()
    try:
        use_synthetic_records(True)
        (record,) = open_capture(text).records().to_dicts()
    finally:
        use_synthetic_records(False)
    assert (record["topic"], record["partition"]) == ("orders", 0)
