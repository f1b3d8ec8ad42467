"""The command `report`: figures equal to those of the other commands, and options."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.public import Exchange, open_capture
from findings.public import findings
from report.gather.exchange_dots import ExchangeDots
from tests.corpus import FOLDER
from tests.report.pages import ParsedPage, page_of, run

DEMO = FOLDER / "demo.pcap"
TRANSACTIONS = FOLDER / "kafka4-librdkafka-transactions.pcap"
CUT = FOLDER / "kafka4-errors.pcap"


def stats(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[dict[str, Any]]:
    assert main(["stats", *map(str, words), "-T", "ndjson"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def shown(value: Any) -> str:
    """Return a value as tables show it."""
    match value:
        case None:
            return ""
        case float():
            return f"{value:,.3f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ParsedPage:
    return page_of(tmp_path_factory.mktemp("demo"), DEMO)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("section", ["apis", "clients", "topics", "brokers"])
def test_totals_equal_those_of_stats(
    section: str, demo: ParsedPage, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = [row for row in stats(capsys, DEMO) if row.pop("section") == section]
    found = demo.dicts(section)
    assert found == [
        {name.replace("_", " "): shown(value) for name, value in row.items()} for row in expected
    ]
    assert found


def test_plots_have_all_exchanges(demo: ParsedPage, capsys: pytest.CaptureFixture[str]) -> None:
    rows = stats(capsys, DEMO)
    apis = {row["api"]: row for row in rows if row["section"] == "apis"}
    plotted = {each["name"]: each for each in demo.plots["series"]["api"]}
    assert plotted.keys() == apis.keys()
    for name, row in apis.items():
        series = plotted[name]
        for column in ("count", "errors", "unanswered", "request_bytes", "response_bytes"):
            assert sum(series[column]) == row[column]
        assert max(filter(None, series["max"])) == pytest.approx(row["max_ms"] * 1000, abs=1)
    (every,) = demo.plots["series"]["all"]
    assert sum(every["count"]) == sum(row["count"] for row in apis.values())


def test_events_equal_those_of_timeline(demo: ParsedPage) -> None:
    from timeline.public import timeline

    events = list(timeline(DEMO))
    found = [
        row["event"] for kind in ("group", "transaction") for row in demo.dicts(f"events-{kind}")
    ]
    assert found == [
        each.event for kind in ("group", "transaction") for each in events if each.kind == kind
    ]
    assert sum(int(row["events"]) for row in demo.dicts("events")) == sum(
        each.count for each in events
    )


def test_findings_equal_those_of_conform(demo: ParsedPage) -> None:
    from conform import conform

    verdict = conform(str(DEMO))
    assert str(verdict) in demo.text
    assert [row["rule"] for row in demo.dicts("findings")] == [
        each.kind.first.rule.id for each in verdict.causes()
    ]


def test_the_slowest_exchanges_are_sorted(demo: ParsedPage) -> None:
    times = [float(row["latency ms"]) for row in demo.dicts("slowest")]
    assert len(times) == 25
    assert times == sorted(times, reverse=True)
    assert demo.dicts("slowest")[0]["request packet"] == "64"


def test_users_of_topics_have_their_software(demo: ParsedPage) -> None:
    users = demo.dicts("users")
    assert {row["topic"] for row in users} >= {"demo.orders", "demo.ledger"}
    assert any(row["software"].startswith("confluent-kafka-python") for row in users)


def test_lags_equal_those_of_groups(demo: ParsedPage, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", str(DEMO), "--interval", "1", "-T", "ndjson"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    last = {
        (row["group"], row.get("topic"), row.get("partition")): row
        for row in rows
        if row["lag"] is not None
    }
    (group,) = demo.dicts("lags")
    assert (group["group"], group["lag"], group["highest"]) == ("billing", "56", "56")
    assert group["note"].startswith("no member; grows by 18.7/s since ")
    partitions = demo.dicts("partition_lags")
    assert [each["lag"] for each in partitions] == ["50", "4", "2"]
    for each in partitions:
        row = last[each["group"], each["topic"], int(each["partition"])]
        names = ("committed", "high watermark", "lag")
        assert [each[name] for name in names] == [
            str(row[name.replace(" ", "_")]) for name in names
        ]
    (course,) = demo.plots["lags"]
    assert course["name"] == "billing"
    assert course["lag"][0] is None
    assert list(dict.fromkeys(course["lag"]))[-2:] == [0, 56]


def test_a_filter_selects_exchanges(tmp_path: Path) -> None:
    page = page_of(tmp_path, DEMO, "-Y", "api == Produce")
    assert [row["api"] for row in page.dicts("apis")] == ["Produce"]
    assert {row["api"] for row in page.dicts("slowest")} == {"Produce"}
    assert "Left out with -Y" in page.text
    assert "findings" not in page.tables


@pytest.mark.long
def test_limits_are_reported(tmp_path: Path) -> None:
    page = page_of(tmp_path, DEMO, "--events", "0", "--conform", "100")
    assert "Left out by --events 0." in page.text
    assert "The first 100 exchanges only" in page.text
    assert "events" not in page.tables
    every = page_of(tmp_path, DEMO, "--events", "all", "--conform", "all")
    assert "exchanges only" not in every.text


@pytest.mark.long
def test_gaps_of_a_capture_are_reported(tmp_path: Path) -> None:
    lost = tmp_path / "lost.pcap"
    data = DEMO.read_bytes()
    lost.write_bytes(data[:24] + _without_first_packets(data, 40))
    page = page_of(tmp_path, lost)
    assert "connections without their begin" in page.text
    assert "they began before the capture" in page.text


def _without_first_packets(data: bytes, count: int) -> bytes:
    offset = 24
    for _ in range(count):
        offset += 16 + int.from_bytes(data[offset + 8 : offset + 12], "little")
    return data[offset:]


def test_the_upgrade_is_checked_for_a_release(tmp_path: Path) -> None:
    old = FOLDER / "kafka39-kafka-python-as-0.9.pcap"
    page = page_of(tmp_path, old, "--to", "4.0")
    assert "4 of 4 clients break with brokers of Kafka 4.0" in page.text
    assert {row["verdict"] for row in page.dicts("upgrade-clients")} >= {"breaks"}


def test_a_capture_without_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(DEMO.read_bytes()[:24])
    page = page_of(tmp_path, empty)
    assert "Over time" not in page.text
    assert "Nothing could be judged" in page.text


def test_tls_without_keys_never_looks_like_a_pass(tmp_path: Path) -> None:
    page = page_of(tmp_path, FOLDER / "kafka4-java-tls13.pcap.gz")
    assert "Nothing could be judged" in page.text
    assert "4 TLS connections not decrypted" in page.text
    assert "0 of 0" not in page.text


@pytest.mark.long
def test_what_stands_out_equals_findings(demo: ParsedPage) -> None:
    report = findings(DEMO)
    for each in report:
        assert each.title in demo.text
    filters = [found.get("data-filter") for tag, found in demo.tags if "data-filter" in found]
    assert filters == [each.filter for each in report if each.filter]


def test_dots_equal_pairs(demo: ParsedPage) -> None:
    with open_capture(DEMO) as capture:
        rows = [each.row() for each in capture]
    answered = [row for row in rows if row["latency_ms"] is not None]
    dots = demo.plots["dots"]
    found = zip(dots["packet"], dots["us"], dots["kind"], dots["api"], strict=True)
    expected = {
        (
            row["request_packet"],
            round(row["latency_ms"] * 1e6) // 1000,
            bool(row["errors"]),
            row["api"],
        )
        for row in answered
    }
    assert {
        (packet, us, kind == 1, dots["apis"][api]) for packet, us, kind, api in found
    } == expected
    empty = {p for p, kind in zip(dots["packet"], dots["kind"], strict=True) if kind == 2}
    with open_capture(DEMO) as capture:
        assert empty == {each.request_packet for each in capture if _brought_nothing(each)}
    assert f"{len(empty)} of 92" in demo.text


def _brought_nothing(exchange: Exchange) -> bool:
    body = exchange.body("response")
    if exchange.api != "Fetch" or body is None or exchange.errors:
        return False
    partitions = [each for topic in body["responses"] for each in topic["partitions"]]
    return not any(each["records"] for each in partitions)


@pytest.mark.long
def test_many_exchanges_become_a_density(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExchangeDots.__init__, "__defaults__", (100,))
    page = page_of(tmp_path, DEMO)
    assert "dots" not in page.plots
    density = page.plots["density"]
    (every,) = page.plots["series"]["all"]
    with open_capture(DEMO) as capture:
        no_response = sum(each.latency_ms is None for each in capture)
    assert sum(density["count"]) == sum(every["count"]) - no_response
    assert sum(density["errors"]) == sum(every["errors"])


@pytest.mark.long
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(DEMO.read_bytes())))
    page = page_of(tmp_path, "-")
    assert page.dicts("apis")[0] == page_of(tmp_path, DEMO).dicts("apis")[0]


@pytest.mark.long
def test_the_report_does_not_depend_on_windows(tmp_path: Path) -> None:
    both = page_of(tmp_path, TRANSACTIONS), page_of(tmp_path, TRANSACTIONS, "--jobs", "1")
    assert both[0].source == both[1].source


def test_the_page_is_not_written_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(DEMO) == 2
    assert "report requires an output file: -o report.html" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--events", "some"), "--events takes a number or all, not 'some'"),
        (("--conform", "-1"), "--conform takes a number or all, not '-1'"),
        (("--to", "9.9"), "--to takes a release of Kafka"),
        (("-Y", "api =="), "filter"),
    ],
)
def test_wrong_usage_is_a_one_line_error(
    words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    assert run(DEMO, *words, "-o", output) == 2
    assert message in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize("suffix", ["ndjson", "xml", "sarif"])
def test_formats_of_findings_are_refused(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"out.{suffix}"
    assert main(["report", str(DEMO), "-o", str(out)]) == 2
    assert f"findings -o writes *.{suffix}" in capsys.readouterr().err
    assert not out.exists()
