"""Captures of real clients and serializers with a registry: what they wrote is what we read."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dissector.cli.app import main
from tests.corpus import FOLDER

CAPTURES = sorted((FOLDER / "values").glob("*.pcap"))
COLUMNS = "api,topic,value_format,value_schema,value_decoded,value_problem"


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_values_are_those_of_the_programs(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their schemas are those that the registry in the capture was sent, or answered."""
    expected = json.loads(capture.with_suffix(".json").read_text("utf-8"))
    assert main(["records", str(capture), "-T", "ndjson", "--columns", COLUMNS]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in rows:
        each = expected[row["topic"]]
        assert row["value_problem"] is None
        assert (row["value_format"], row["value_schema"]) == (each["format"], each["schema"])
        found[row["api"], row["topic"]].append(row["value_decoded"])
    for topic, each in expected.items():
        assert in_any_order(found["Produce", topic]) == in_any_order(each["values"])
        fetched = found.get(("Fetch", topic), each["values"])
        assert in_any_order(fetched) == in_any_order(each["values"])
    assert {api for api, _ in found} == {"Produce", "Fetch"}


def in_any_order(values: list[Any]) -> list[str]:
    """Return values as texts; partitions have no common order."""
    return sorted(json.dumps(each, sort_keys=True) for each in values)


def test_there_is_a_capture_of_each_language() -> None:
    assert [each.stem for each in CAPTURES] == ["apicurio-java", "confluent-python", "franz-go-sr"]
    assert all(each.stat().st_size < 100_000 for each in CAPTURES)
