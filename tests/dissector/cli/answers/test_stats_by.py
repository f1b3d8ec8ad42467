"""`stats --by` equals totals over the rows of `pairs`."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars
import pytest

from dissector import dissect, open_capture
from dissector.summary.key_columns import KEYS
from tests.dissector.cli.conftest import Run

CAPTURES = Path(__file__).parents[4] / "captures"

Row = dict[str, Any]


def labels(row: Row, key: str, software: dict[int, tuple[str, str]]) -> list[tuple[Any, ...]]:
    """Return the values of a key in a row of `pairs`."""
    match key:
        case "minute" | "second" | "hour":
            time = datetime.fromtimestamp(
                (row["request_time_ns"] or row["response_time_ns"]) // 10**9, UTC
            )
            form = {"hour": "%F %H", "minute": "%F %H:%M", "second": "%F %T"}[key]
            return [(f"{time:{form}}Z",)]
        case "client":
            return [(row["client_id"], row["client"].rpartition(":")[0])]
        case "topic":
            return [(each,) for each in row["topics"]]
        case "error":
            return [(each,) for each in row["errors"]]
        case "software":
            return [software.get(row["connection"], (None, None))]
        case "version":
            return [(row["api_version"],)]
        case "api":
            return [("orphan" if row["status"] == "orphan" else row["api"],)]
        case _:
            return [(row[key],)]


def nearest_rank(values: list[float], percent: int) -> float | None:
    return sorted(values)[max(1, -(-percent * len(values) // 100)) - 1] if values else None


def totals(rows: list[Row], with_names: bool) -> Row:
    times = [row["latency_ms"] for row in rows if row["latency_ms"] is not None]
    names = Counter(name for row in rows for name in row["errors"])
    return {
        "count": len(rows),
        "errors": sum(bool(row["errors"]) for row in rows),
        "unanswered": sum(row["status"] == "unanswered" for row in rows),
        "min_ms": min(times, default=None),
        **{f"p{percent}_ms": nearest_rank(times, percent) for percent in (50, 95, 99)},
        "max_ms": max(times, default=None),
        "request_bytes": sum(row["request_bytes"] or 0 for row in rows),
        "response_bytes": sum(row["response_bytes"] or 0 for row in rows),
        **({"errors_by_name": dict(names)} if with_names else {}),
    }


COLUMNS = {"client": ("client_id", "client"), "software": ("software_name", "software_version")}
COLUMNS["version"] = ("api_version",)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["demo.pcap", "kafka4-errors.pcap"])
@pytest.mark.parametrize(
    "keys",
    ["api", "second,api", "error", "topic,error", "client,minute", "software,version", "broker"],
)
def test_statistics_by_keys(good: Run, name: str, keys: str) -> None:
    path = CAPTURES / name
    software = {
        each.connection: (body.client_software_name, body.client_software_version)
        for each in dissect(path)
        if each.api == "ApiVersions" and (body := each.request and each.request.body)
        if "client_software_name" in body
    }
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in good("pairs", path, "-T", "ndjson").rows:
        found: list[tuple[Any, ...]] = [()]
        for key in keys.split(","):
            found = [one + other for one in found for other in labels(row, key, software)]
        for label in found:
            groups[label].append(row)
    names = [column for key in keys.split(",") for column in COLUMNS.get(key, (key,))]
    rows = good("stats", path, "-T", "ndjson", "--by", keys).rows
    assert rows.pop()["section"] == "capture"
    assert {row.pop("section") for row in rows} == {f"by {keys.replace(',', ', ')}"}
    got = {tuple(row.pop(name) for name in names): row for row in rows}
    assert got == {key: totals(value, "error" not in keys) for key, value in groups.items()}


def test_groups_and_partitions(good: Run, run: Run) -> None:
    path = CAPTURES / "demo.pcap"
    groups, partitions = Counter[str](), Counter[str]()
    for exchange in dissect(path):
        body = exchange.request and exchange.request.body
        if body and exchange.api != "FindCoordinator":
            groups.update([body.group_id] if body.get("group_id") else [])
            groups.update(each.group_id for each in body.get("groups") or ())
        if exchange.api == "Produce" and body:
            for topic in body.topic_data:
                partitions.update(f"{topic.name}-{each.index}" for each in topic.partition_data)
    rows = good("stats", path, "--by", "group,api", "-T", "ndjson").rows[:-1]
    found = Counter[str]()
    for row in rows:
        found[row["group"]] += row["count"]
    assert found == groups
    produced = ("stats", path, "--by", "partition", "-Y", "api == Produce", "-T", "ndjson")
    assert {row["partition"]: row["count"] for row in good(*produced).rows[:-1]} == partitions
    table = open_capture(path, filter="api == Fetch").stats(by="partition")["partition"]
    assert {each.rpartition("-")[0] for each in table["partition"]} == {"demo.orders"}
    both = run("stats", path, "--by", "topic,partition")
    assert both.err == "kafkashark: --by partition has the topics, too: leave out topic\n"


def test_time_keys_come_first_in_order(good: Run) -> None:
    rows = good("stats", CAPTURES / "demo.pcap", "-T", "ndjson", "--by", "second,api").rows[:-1]
    assert [row["second"] for row in rows] == sorted(row["second"] for row in rows)
    assert len({row["second"] for row in rows}) > 3


def test_tables_on_demand(good: Run, shop: Path) -> None:
    out = good("stats", shop, "--by", "api,error", "--talkers", "--sizes", "--topics").out
    headings = ["By api, error", "Users of topics", "Talkers", "Sizes of messages", "Capture"]
    assert [line for line in out.splitlines() if line in headings] == headings
    assert "NOT_LEADER_OR_FOLLOWER" in out
    assert "Per API" not in out
    by_api = good("stats", shop, "--by", "api").out
    assert "NOT_LEADER_OR_FOLLOWER 1" in by_api


def test_clients_and_their_software(good: Run, shop: Path) -> None:
    rows = good("stats", CAPTURES / "demo.pcap", "--clients", "-T", "ndjson").rows
    (shop_row,) = (row for row in rows if row.get("client_id") == "shop")
    assert shop_row == {
        "section": "client_software",
        "client_id": "shop",
        "client": "127.0.0.1",
        "software_name": "confluent-kafka-python",
        "software_version": "2.16.1-rdkafka-2.16.0",
        "count": 39,
        "errors": 0,
        "unanswered": 0,
        "connections": 5,
        "request_bytes": 7687,
        "response_bytes": 5873,
    }
    (none,) = (row for row in rows if row.get("client_id") == "aiokafka-gzip")
    assert (none["software_name"], none["software_version"]) == (None, None)
    filtered = good("stats", CAPTURES / "demo.pcap", "--clients", "-Y", "api == Produce").out
    assert "2.16.1-rdkafka" in filtered


def test_talkers_by_bytes(good: Run, shop: Path) -> None:
    rows = good("stats", shop, "--talkers", "-T", "ndjson").rows[:-1]
    traffic = [row["bytes"] for row in rows]
    assert traffic == sorted(traffic, reverse=True)
    assert all(row["bytes"] == row["request_bytes"] + row["response_bytes"] for row in rows)
    assert {(row["broker"], row["connections"]) for row in rows} == {
        ("10.0.0.2:9092", 1),
        ("[fd00::2]:9092", 1),
    }


def test_sizes(good: Run, shop: Path) -> None:
    rows = good("stats", shop, "--sizes", "-T", "ndjson").rows
    (produce,) = (row for row in rows if row.get("api") == "Produce")
    assert (produce["request_p50_bytes"], produce["request_max_bytes"]) == (162, 162)
    assert (produce["response_p50_bytes"], produce["response_p99_bytes"]) == (43, 53)
    (beats,) = (row for row in rows if row.get("api") == "Heartbeat")
    assert beats["response_max_bytes"] is not None


def test_wrong_keys(run: Run, shop: Path) -> None:
    known = (
        f"{', '.join(KEYS)}, hook.NAME, an interval such as '10 s', or a field of keys or values "
        "such as value.user.id"
    )
    done = run("stats", shop, "--by", "api,day")
    assert done == (2, "", f"kafkashark: --by takes {known}, not 'day'\n")
    done = run("stats", shop, "--by", "api,api")
    assert done == (2, "", "kafkashark: --by api,api has a key twice\n")


DEMO = "captures/demo.pcap"


def test_intervals_hours_and_origins(good: Run) -> None:
    seconds, tens, hours = (
        good("stats", DEMO, "--by", key, "-T", "ndjson").rows[:-1] for key in ("2 s", "10s", "hour")
    )
    assert [row["time"] for row in seconds] == [
        f"2026-11-21 09:46:{second}Z" for second in (30, 32, 34, 36)
    ]
    assert [row["time"] for row in tens] == ["2026-11-21 09:46:30Z"]
    assert [row["hour"] for row in hours] == ["2026-11-21 09Z"]
    assert sum(row["count"] for row in seconds) == tens[0]["count"] == hours[0]["count"] == 281
    assert good("stats", DEMO, "--by", "origin", "-T", "ndjson").rows[0]["origin"] is None


def test_network_and_broker_are_parts_of_the_latency(good: Run) -> None:
    exchanges = good("pairs", DEMO, "-T", "ndjson").rows
    rows = good("stats", DEMO, "--network", "-T", "ndjson").rows[:-1]
    assert sum(row["count"] for row in rows) == len(exchanges)
    for row in rows:
        chosen = [
            each
            for each in exchanges
            if (each["client_id"], each["broker"]) == (row["client_id"], row["broker"])
            and each["client"].rpartition(":")[0] == row["client"]
        ]
        for part in ("network", "server"):
            values = sorted(each[f"{part}_ms"] for each in chosen if each[f"{part}_ms"] is not None)
            median = values[-(-len(values) // 2) - 1] if values else None
            assert row[f"{part}_p50_ms"] == median


def test_sections_in_files(good: Run, tmp_path: Path) -> None:
    """One section is a table; several have their name in the first column."""
    path = tmp_path / "a.parquet"
    good("stats", DEMO, "--by", "api", "-T", "parquet", "-o", path)
    table = polars.read_parquet(path)
    rows = good("stats", DEMO, "--by", "api", "-T", "ndjson").rows[:-1]
    assert table["count"].to_list() == [row["count"] for row in rows]
    assert table["p99_ms"].to_list() == [row["p99_ms"] for row in rows]
    assert table.schema["count"] == polars.Int64
    found = list(csv.DictReader(good("stats", DEMO, "-T", "csv").out.splitlines()))
    assert list(dict.fromkeys(row["section"] for row in found)) == [
        *("apis", "clients", "topics", "brokers"),
    ]
    good("groups", DEMO, "--interval", "1", "-T", "parquet", "-o", path)
    lags = polars.read_parquet(path)
    expected = good("groups", DEMO, "--interval", "1", "-T", "ndjson").rows
    assert lags["lag"].to_list() == [row["lag"] for row in expected]
    assert lags.schema["lag"] == polars.Int64
    run_rows = good("groups", DEMO, "-T", "csv").out.splitlines()
    assert run_rows[0].startswith("section,group,")


def test_fields_of_keys_and_values(good: Run, run: Run, tmp_path: Path) -> None:
    """Exchanges count for each value in their records; those without the field for none."""
    items: Counter[tuple[str, str]] = Counter()
    columns = "connection,correlation_id,api,value.item"
    rows = good("records", DEMO, "-T", "ndjson", "--columns", columns).rows
    exchanges = {tuple(row.values()) for row in rows if row["value.item"] is not None}
    items.update((item, api) for _, _, api, item in exchanges)
    found = good("stats", DEMO, "--by", "value.item,api", "-T", "ndjson").rows[:-1]
    assert {(row["value.item"], row["api"]): row["count"] for row in found} == items
    assert {api for _, api in items} == {"Produce", "Fetch"}

    lamps = good("stats", DEMO, "--by", "value.item", "-Y", "value.item == lamp").lines
    assert lamps[1].split()[0] == "value.item"
    assert any(line.startswith("lamp ") for line in lamps)
    # Numbers and nested values are JSON.
    quantities = good("stats", DEMO, "--by", "value.quantity", "-T", "ndjson").rows[:-1]
    assert {row["value.quantity"] for row in quantities} == {str(each) for each in range(1, 8)}
    nothing = good("stats", DEMO, "--by", "value.nowhere", "-T", "csv").lines
    assert len(nothing) == 1
    file = tmp_path / "items.parquet"
    good("stats", DEMO, "--by", "value.item", "-T", "parquet", "-o", file)
    assert "lamp" in set(polars.read_parquet(file)["value.item"])
    for key in ("value.", "value..item", "values.item"):
        assert run("stats", DEMO, "--by", key)[0] == 2


def test_masked_fields_are_not_values(good: Run) -> None:
    hidden = good("stats", DEMO, "--by", "value.item", "--mask", "value.item", "-T", "ndjson")
    assert len({row["value.item"] for row in hidden.rows[:-1]}) == 1
    assert "lamp" not in hidden.out
