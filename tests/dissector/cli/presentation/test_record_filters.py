"""Filters of records give the same rows from columns and one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.engine.exchanges import exchange_facts
from tests.dissector.cli.conftest import Run

DEMO = Path(__file__).parents[4] / "captures" / "demo.pcap"

TESTS = {
    "partition == 1 and offset > 10": lambda row: row["partition"] == 1 and row["offset"] > 10,
    'value contains "lamp"': lambda row: "lamp" in str(row["value"]),
    "key matches 'CUSTOMER-1$'": lambda row: row["key"] == "customer-1",
    'key[0:8] == "customer" and len(key) == 10': lambda row: len(row["key"] or "") == 10,
    "compressed and api == Produce": lambda row: row["codec"] != "none" and row["api"] == "Produce",
    "codec == 4": lambda row: row["codec"] == "zstd",
    "acks == -1": lambda row: row["acks"] == -1,
    "frame.number <= 100": lambda row: row["packet"] <= 100,
    'timestamp > "2026-11-21 09:46:35Z"': lambda row: row["timestamp_ms"] > 1795254395000,
    "count(headers) > 0": lambda row: bool(row["headers"]),
    'headers contains "trace=" and headers contains "7"': lambda row: any(
        "7" in f"{each['key']}={each['value']}" for each in row["headers"]
    ),
    'headers matches "^TRACE=."': lambda row: "trace" in {each["key"] for each in row["headers"]},
    "headers.trace": lambda row: any(each["key"] == "trace" for each in row["headers"]),
    "header.trace": lambda row: any(each["key"] == "trace" for each in row["headers"]),
    "all headers.key == trace": lambda row: {each["key"] for each in row["headers"]} == {"trace"},
    "kafka.message_value ~ 'LAMP'": lambda row: "lamp" in str(row["value"]),
    "topic == demo.orders and status == answered": lambda row: (
        (row["topic"], row["status"]) == ("demo.orders", "answered")
    ),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", TESTS)
def test_rows_are_the_matching_records(
    good: Run, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = good("records", DEMO, "-T", "ndjson").rows
    expected = [row for row in every if TESTS[text](row)]
    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", 1)
    in_columns = good("records", DEMO, "-T", "ndjson", "-Y", text).rows
    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", 10**9)
    one_by_one = good("records", DEMO, "-T", "ndjson", "-Y", text).rows
    assert in_columns == one_by_one == expected
    assert len(expected) < len(every)


@pytest.mark.parametrize("least", [1, 10**9])
def test_only_refused_records_have_an_error(
    good: Run, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", least)
    capture = DEMO.with_name("kafka4-errors.pcap")

    def errors(text: str) -> list[str]:
        rows = good("records", capture, "-T", "ndjson", "-Y", text).rows
        return [row["error"] for row in rows]

    assert errors("error") == ["MESSAGE_TOO_LARGE"]
    assert errors("error == NONE") == ["NONE"] * 6
    assert "MESSAGE_TOO_LARGE" not in errors("not error")
    assert len(errors("not error")) == 11


def test_a_test_of_a_body_field_needs_exchange_objects(good: Run) -> None:
    text = "request.acks == -1 and partition == 1"
    rows = good("records", DEMO, "-T", "ndjson", "-Y", text).rows
    assert rows
    assert {(row["api"], row["partition"]) for row in rows} == {("Produce", 1)}


def test_filters_of_pairs_search_compressed_bytes(good: Run) -> None:
    field = "request.topic_data.partition_data.records"
    found = good("pairs", DEMO, "-T", "ndjson", "-Y", f'{field} contains "lamp"').rows
    same = good("pairs", DEMO, "-T", "ndjson", "-Y", 'kafka.message_value contains "lamp"').rows
    records = good("records", DEMO, "-T", "ndjson", "-Y", 'value contains "lamp"').rows
    packets = {row["packet"] for row in records if row["api"] == "Produce"}
    assert {row["request_packet"] for row in found} == packets
    assert {row["request_packet"] for row in same if row["api"] == "Produce"} == packets
    assert {row["codec"] for row in records} > {"zstd"}
