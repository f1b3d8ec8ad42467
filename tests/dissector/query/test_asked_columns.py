"""Columns that are asked alone have the values of all columns; what nobody asks is not read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.engine.exchanges import exchange_facts
from dissector.engine.exchanges.exchange import COLUMNS
from dissector.engine.exchanges.exchange_columns import CONNECTION
from dissector.engine.exchanges.fact_columns import SUMMARY_COLUMNS
from dissector.engine.tables.column_types import row_count, row_dict
from dissector.query.filtered_capture import Capture
from tests import tcp_captures
from tests.corpus import each_capture
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.cli_traffic import PRODUCE, PRODUCED

DEMO = Path(__file__).parents[3] / "captures" / "demo.pcap"
PLAIN = frozenset(COLUMNS) - SUMMARY_COLUMNS
ASKED = (
    *({name} for name in sorted(SUMMARY_COLUMNS)),
    {"client_id", "errors", "topics"},
    {"api_key", "api_version", "correlation_id"},
    PLAIN,
)
FILTERS = (
    None,
    "api in {Produce, Fetch} and latency_ms > 0.5",
    "problems or errors != NONE",
    'topics contains "o" or request.acks == 0',
)


def rows(
    path: Path, chosen: str | None, asked: Collection[str] | None, shown: Collection[str]
) -> list[dict[str, Any]]:
    """Return some columns of a capture's rows, of which only the asked ones are made."""
    capture = Capture([path], filter=chosen)
    parts = capture.parts(None if asked is None else frozenset(asked))
    found = (row_dict(part, row) for part in parts for row in range(row_count(part)))
    return [{name: row[name] for name in shown} for row in found]


@pytest.mark.thinned(2)
@each_capture("asked columns", chosen=FILTERS)
def test_chosen_columns_are_those_of_all(path: Path, chosen: str | None) -> None:
    whole = rows(path, chosen, None, COLUMNS)
    for asked in ASKED:
        expected = [{name: row[name] for name in asked} for row in whole]
        assert rows(path, chosen, asked, asked) == expected


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A capture with 150 Produce requests, one of them with damaged records."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    bad = PRODUCED[:-1] + bytes([PRODUCED[-1] ^ 1])
    for number in range(150):
        records = bad if number == 77 else PRODUCED
        data = [{"name": "orders", "partition_data": [{"index": 3, "records": records}]}]
        request = cli_traffic.request_frame(PRODUCE, 9, number, acks=0, topic_data=data)
        connection.client(request)
    return Path(tcp_captures.write(tmp_path / "damaged.pcap", wire.packets))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever is read of bodies (`facts`) and of records (`records`), in order."""
    found: list[str] = []
    for name, what in (("summarise_facts", "facts"), ("invalid_fields", "records")):
        real = getattr(exchange_facts, name)
        module = "dissector.engine.reading.capture" if what == "facts" else exchange_facts.__name__

        def noted(*words: Any, real: Any = real, what: str = what) -> Any:
            # Without records there are no fields of them.
            if what == "facts" or len(words[2]):
                found.append(what)
            return real(*words)

        monkeypatch.setattr(f"{module}.{name}", noted)
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--columns", "api_key,api_version,correlation_id"), set()),
        (("-e", "kafka.api_key", "-e", "tcp.stream"), set()),
        (("--columns", "client_id"), {"facts"}),
        (("--columns", "api", "--sort", "errors"), {"facts"}),
        (("--columns", "api", "-Y", "latency_ms > 1"), set()),
        (("--columns", "api", "-Y", 'topics == "orders"'), {"facts"}),
        (("-e", "kafka.topic_name"), {"facts"}),
        (("--columns", "problems"), {"facts", "records"}),
        (("--columns", "api", "--sort", "problems"), {"facts", "records"}),
        (("--columns", "api", "-Y", "problems"), {"facts", "records"}),
        (("-e", "count(problems)"), {"facts", "records"}),
        ((), {"facts", "records"}),
    ],
)
def test_only_stages_of_asked_columns_run(
    damaged: Path, read: list[str], words: tuple[str, ...], expected: set[str]
) -> None:
    assert main(["pairs", str(damaged), "-T", "ndjson", "-o", "/dev/null", *words]) == 0
    assert set(read) == expected


def test_problems_of_records_are_found_when_asked(damaged: Path) -> None:
    (found,) = (row for row in rows(damaged, None, {"problems"}, {"problems"}) if row["problems"])
    assert "CRC" in found["problems"][0]
    assert len(rows(damaged, "problems", {"api"}, {"api"})) == 1


def parts(chosen: str | None, asked: frozenset[str]) -> Iterator[Any]:
    return Capture([DEMO], filter=chosen).parts(asked)


def test_other_columns_are_not_made() -> None:
    names = {CONNECTION, "api", "latency_ms"}
    for part in parts(None, frozenset(("api", "latency_ms"))):
        assert part.keys() == names
    for part in parts("status == answered", frozenset(("api", "latency_ms"))):
        assert part.keys() == names | {"status"}
