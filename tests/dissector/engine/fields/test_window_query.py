"""A filter selects the same rows from the columns of a window and from objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import open_capture
from dissector.engine.exchanges import exchange_facts
from dissector.engine.fields.window_query import WindowQuery
from dissector.engine.tables.column_types import row_count, row_dict
from dissector.filter import Filter, parse
from tests.corpus import CAPTURES, each_capture

FILTERS = [
    parse(text)
    for text in (
        "api == Produce or api == Fetch",
        "api_version >= 4 and not client_id contains 'admin'",
        "latency_ms > 2.5 or latency_ms == null",
        "request_bytes in {0..100, 345} and status == answered",
        "error",
        "error == NONE and topic",
        "problem",
        "tcp.port == 9092 and connection < 3",
        "client matches '1' or correlation_id == 2",
        "client == 127.0.0.1 or capture contains kafka",
        "request.acks == -1",
        "request.topic_data.name",
        "request.topics == null",
        "request.topics.name matches '^[a-m]'",
        "response.error_code != 0 or response.responses.partition_responses.error_code > 0",
        "response.brokers.host contains '.' and response.cluster_id",
        "response.topics.topic_id or request.topics.topic_id",
        "not (request.group_id or request.groups)",
        "response.throttle_time_ms == 0 and response.api_keys.api_key == Fetch",
        "response.finalized_features_epoch >= 0",
        "request.topics.partitions.partition >= 1 and api_version < 13",
        "request_time_ns > 0 and response_bytes != 14",
        "len(client_id) > 4 and lower(api)[0:3] in {met, pro}",
        "count(topics) > 0 and count(request.topics.name) != 1",
        "all tcp.port > 9000 and any kafka.partition_id >= 1",
        "all response.responses.partition_responses.error_code == 0",
        "frame.number > 20 and frame.time > '2001-01-01' and frame.time_relative > 0.5",
        "frame.len > 200",
        "kafka.message_value or kafka.batch_crc > 0",
        "kafka.consumer_group ~ '.' or kafka.rack[0:1] == r",
    )
]


@pytest.mark.thinned(4)
@each_capture("selection")
def test_columns_and_objects_pass_the_same_rows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = open_capture(path)
    capture.options.packet_facts = frozenset(("lengths", "comments"))
    for window in capture.windows():
        monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", 1)
        selection = WindowQuery(capture, window)
        for chosen in FILTERS:
            rows = chosen.passing(selection)
            assert rows.tolist() == by_objects(selection, chosen), chosen.text
            columns = selection.select(rows)
            assert row_count(columns) == len(rows)
            if len(rows):
                last = selection.exchange(int(rows[-1]))
                assert row_dict(columns, len(rows) - 1) == last.row()


def by_objects(selection: WindowQuery, chosen: Filter) -> list[int]:
    return [row for row in range(len(selection)) if chosen.matches(selection.exchange(row))]


def test_each_filter_passes_some_rows_only() -> None:
    capture = open_capture(next(path for path in CAPTURES if path.name == "demo.pcap"))
    capture.options.packet_facts = frozenset(("lengths", "comments"))
    for window in capture.windows():
        if len(window.exchanges):
            selection = WindowQuery(capture, window)
            counts = {each.text: len(each.passing(selection)) for each in FILTERS}
            some = [text for text, count in counts.items() if 0 < count < len(selection)]
            assert len(some) > len(FILTERS) // 3, counts
