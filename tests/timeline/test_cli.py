"""The command `timeline`: formats, filters, options."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars
import pytest

from dissector import open_capture
from dissector.cli import main
from tests.corpus import FOLDER
from timeline.cli import timeline
from timeline.events.event import COLUMNS

CAPTURE = str(FOLDER / "kafka4-librdkafka-group.pcap")


def run(*words: str) -> int:
    return main(["timeline", *words], [("timeline", timeline)])


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert run(*words, "-T", "ndjson") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_formats_have_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, CAPTURE)
    assert all(tuple(row) == COLUMNS for row in found)
    assert run(CAPTURE, "-T", "csv") == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [json.loads(row["evidence"]) for row in table] == [row["evidence"] for row in found]
    assert [row["text"] for row in table] == [row["text"] for row in found]
    file = tmp_path / "events.parquet"
    assert run(CAPTURE, "-T", "parquet", "-o", str(file)) == 0
    assert polars.read_parquet(file).to_dicts() == found


def test_evidence_names_the_exchanges(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = rows(capsys, CAPTURE, "--kind", "group")[0]["evidence"]
    assert evidence == [
        {
            "capture": CAPTURE,
            "connection": 4,
            "client": "127.0.0.1:51720",
            "client_id": "rdkafka-first",
            "broker": "127.0.0.1:27623",
            "request_packet": 74,
            "response_packet": 75,
            "correlation_id": 4,
            "api": "JoinGroup",
        }
    ]


def test_kinds_select_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert {row["kind"] for row in rows(capsys, CAPTURE, "--kind", "group,connection")} == {
        "group",
        "connection",
    }


def test_a_display_filter_selects_by_the_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, CAPTURE, "--kind", "group", "-Y", "api == LeaveGroup")
    assert [(row["event"], row["cause"]) for row in found] == [
        ("left", ""),
        ("rebalance", "left"),
        ("left", ""),
    ]
    assert all("2 to 3" in row["text"] for row in found if row["event"] == "rebalance")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "groups"), "--kind takes group, producer"),
        (("--kind", "record"), "--records FILTER"),
        (("--records", "keys == 1"), "unknown name 'keys'"),
        (("--records", "key == 1", "--otlp", "a.jsonl"), "without --records"),
        (("-T", "html"), "-T takes text, table, ndjson, csv, parquet, mermaid"),
        (("-Y", "api =="), "filter"),
    ],
)
def test_wrong_usage_is_a_one_line_error(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(CAPTURE, *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["kafka4-librdkafka-group.pcap", "demo.pcap"])
def test_events_do_not_depend_on_windows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from dissector import Options
    from dissector.engine.reading.capture import Capture
    from timeline.public import timeline as events_of

    path = str(FOLDER / name)
    small = Capture([path], Options(window_bytes=2_000))
    assert [each.row() for each in events_of(small)] == rows(capsys, path)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("options", [(), ("--kind", "group"), ("-Y", "api == SyncGroup")])
def test_relative_times_begin_with_the_capture(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (first, *_) = rows(capsys, CAPTURE, *options, "--kind", "group")
    assert run(CAPTURE, *options) == 0
    lines = capsys.readouterr().out.splitlines()
    begin_ns = next(iter(open_capture(CAPTURE))).request_time_ns
    shown = next(line for line in lines if f" {first['event']}" in line and " group " in line)
    assert float(shown.split()[0]) >= (first["time_ns"] - begin_ns) / 1e9 > 0
