"""Answers about a capture in Python are those of the commands."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from dissector.cli import main
from dissector.errors import DecodeError, UsageError
from kafkashark import api, codec, open_capture
from tests.replay.support.replay_captures import SHIPPED

DEMO = SHIPPED / "demo.pcap"
FILTER = "client_id contains billing or api == Fetch"


@pytest.fixture
def rows_of(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the rows that a command prints, by section."""

    def command(*words: str) -> dict[str, list[dict[str, Any]]]:
        main([words[0], str(DEMO), *words[1:], "-T", "ndjson"])
        found: dict[str, list[dict[str, Any]]] = {}
        for line in capsys.readouterr().out.splitlines():
            row = json.loads(line)
            found.setdefault(row.pop("section", ""), []).append(row)
        return found

    return command


def filled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without nulls: a table has all columns and fields in each row."""

    def kept(cell: Any) -> Any:
        if not isinstance(cell, dict):
            return cell
        return {name: kept(each) for name, each in cell.items() if each is not None}

    return [kept(row) for row in rows]


@pytest.mark.parametrize("interval", [None, 1.0])
def test_groups(rows_of: Any, interval: float | None) -> None:
    words = [] if interval is None else ["--interval", "1"]
    found = open_capture(DEMO, filter=FILTER).groups(interval)
    expected = rows_of("groups", "-Y", FILTER, *words)
    assert expected
    for name, rows in expected.items():
        assert filled(found[name].to_dicts()) == filled(rows), name
    assert len(open_capture(DEMO, filter="api == Heartbeat").groups()["partitions"]) == 0


def test_stats_by_keys(rows_of: Any) -> None:
    keys = "software,api"
    found = open_capture(DEMO, filter=FILTER).stats(by=keys)
    expected = rows_of("stats", "-Y", FILTER, "--by", keys)["by software, api"]
    assert filled(found[keys].to_dicts()) == filled(expected)
    assert list(found) == [keys, "capture"]
    with pytest.raises(UsageError, match="--by takes"):
        open_capture(DEMO).stats(by=["what"])


@pytest.mark.parametrize("clients", [False, True])
def test_upgrade(rows_of: Any, clients: bool) -> None:
    found = open_capture(DEMO).upgrade("4.0", clients=clients)
    expected = rows_of("upgrade", "--to", "4.0", *(["--clients"] if clients else []))
    assert filled(found.to_dicts()) == filled(expected.get("", []))
    with pytest.raises(UsageError, match=r"to takes a release of Kafka, .* not 'x'"):
        open_capture(DEMO).upgrade("x")


def test_answers_of_packages_above(rows_of: Any) -> None:
    capture = open_capture(DEMO)
    events = capture.timeline()
    assert repr(events) == "<Events, 0 so far>"
    first = next(events)
    assert repr(events) == f"<Events, 1 so far: 1 {first.kind}>"
    rows = rows_of("timeline")[""]
    assert 1 + len(list(events)) == len(rows)
    kinds = Counter(row["kind"] for row in rows)
    assert {*repr(events).partition(": ")[2].strip(">").split(", ")} == {
        f"{count:,} {kind}" for kind, count in kinds.items()
    }
    assert f"<b>Events, {len(rows):,}</b>" in events._repr_html_()
    found = [(each.advice.id, each.subject.client_id) for each in capture.advise()]
    rows = rows_of("advise", "--fail-on", "nothing")["finding"]
    assert found == [(row["advice"], row["client_id"] or "") for row in rows]


def test_apis_by_their_names() -> None:
    assert api("Produce") is api(0)
    assert api("produce") is None
    assert codec("Fetch", 4, "request").label == codec(1, 4, "request").label
    with pytest.raises(DecodeError, match="no API has the name 'Produc'; did you mean Produce"):
        codec("Produc", 9, "request")
