"""The command `exporter`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from dissector.cli import main
from exporter.metric_families import DIMENSIONS, HEALTH, HISTOGRAM, all_families
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.test_process import started
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"

LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')

Values = Mapping[str, Mapping[tuple[str, ...], float]]


def parsed(text: str) -> Values:
    """Read Prometheus' text: name -> values of the labels -> number."""
    found: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match is not None, line
            labels = tuple(re.findall(r'="((?:[^"\\]|\\.)*)"', match[2] or ""))
            assert labels not in found[match[1]], line
            found[match[1]][labels] = float(match[3])
    return found


def exported(tmp_path: Path, *words: str) -> Values:
    file = tmp_path / "metrics.prom"
    assert main(["exporter", *words, "-o", str(file)]) == 0
    return parsed(file.read_text())


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main([*words, "-T", "ndjson"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "words",
    [
        ("demo.pcap",),
        ("kafka4-errors.pcap", "-Y", "api in {Produce, Metadata}"),
        ("kafka4-request-log.log.gz",),
    ],
)
def test_figures_equal_those_of_stats(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, *options = words
    given = [str(CAPTURES / capture), *options]
    found = exported(tmp_path, *given)
    for name, dimension in DIMENSIONS.items():
        prefix, errors = f"kafkashark_{name}", Counter[str]()
        table = rows(capsys, "stats", *given, *(x for key in dimension.keys for x in ("--by", key)))
        of_rows = [each for each in table if each["section"] != "capture"]
        assert len(of_rows) == len(found[f"{prefix}_exchanges_total"]) > 0
        for row in of_rows:
            columns = [each for each in row if each not in ("section", "count")][
                : len(dimension.labels)
            ]
            label = tuple(str(row[each] or "unknown") for each in columns)
            assert found[f"{prefix}_exchanges_total"][label] == row["count"]
            assert found[f"{prefix}_failed_exchanges_total"].get(label, 0) == row["errors"]
            assert found[f"{prefix}_unanswered_exchanges_total"].get(label, 0) == row["unanswered"]
            for side in ("request_bytes", "response_bytes"):
                assert found[f"{prefix}_{side}_sum"].get(label, 0) == (row[side] or 0)
            errors.update(row["errors_by_name"])
        if f"{prefix}_errors_total" in found:
            by_name = Counter[str]()
            for (_, error), count in found[f"{prefix}_errors_total"].items():
                by_name[error] += int(count)
            assert by_name == errors
    (health,) = (each for each in table if each["section"] == "capture")
    assert {key: found[family.name][()] for key, family in HEALTH.items()} == {
        key: health[key] for key in HEALTH
    }


def test_histograms_equal_the_exchanges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = str(CAPTURES / "demo.pcap")
    found = exported(tmp_path, demo, "-Y", "api == Produce")
    latencies = [
        each["latency_ms"] / 1000
        for each in rows(capsys, "pairs", demo, "-Y", "api == Produce")
        if each["latency_ms"] is not None
    ]
    buckets = found["kafkashark_api_latency_seconds_bucket"]
    assert len(buckets) == 15
    for (_, bound), count in buckets.items():
        assert count == sum(each <= float(bound) for each in latencies)
    total = found["kafkashark_api_latency_seconds_sum"]["Produce",]
    assert total == pytest.approx(sum(latencies))
    assert found["kafkashark_api_latency_seconds_count"]["Produce",] == len(latencies)


@pytest.mark.parametrize("capture", ["kafka4-static-members.pcap", "kafka4-errors.pcap"])
def test_groups_equal_those_of_groups(
    capture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = str(CAPTURES / capture)
    found = exported(tmp_path, given)
    rebalances, lags = {}, Counter[tuple[str, str]]()
    for row in rows(capsys, "groups", given):
        if row["section"] == "groups" and row["rebalances"]:
            rebalances[row["group"],] = row["rebalances"]
        if row["section"] == "partitions" and row["lag"]:
            lags[row["group"], row["topic"]] += row["lag"]
    assert found.get("kafkashark_group_rebalances_total", {}) == rebalances
    shown = found.get("kafkashark_group_lag_records", {})
    assert {label: lag for label, lag in shown.items() if lag} == lags


def test_names_beyond_the_limit_are_counted_as_other_and_hostile_ones_stay_labels(
    tmp_path: Path,
) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    names = ['a"} 1\nfake 2', "\x1b[2Jb\\", "long" * 2000, "long" * 2001, "x", "y", "z"]
    for number, name in enumerate(names):
        asked = {"topics": [{"name": name}]}
        connection.client(cli_traffic.request_frame(3, 9, number, **asked))
    capture = str(tcp_captures.write(tmp_path / "names.pcap", wire.packets))
    found = exported(tmp_path, capture, "--max-series", "4")["kafkashark_topic_exchanges_total"]
    assert sum(found.values()) == len(names)
    assert found.pop(("other",)) == 2
    assert [count for count in found.values() if count > 1] == [2.0]
    assert all(len(each) <= 130 for label in found for each in label)
    assert {'a\\"} 1\\\\x0afake 2', "\\\\x1b[2Jb\\\\", "x"} < {label for (label,) in found}


def test_metrics_are_served_until_the_end() -> None:
    process = started(
        "exporter", str(CAPTURES / "demo.pcap"), "--listen", "127.0.0.1:0", stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    url = process.stderr.readline().decode().split()[-1]
    assert "all is read" in process.stderr.readline().decode()
    with urlopen(url, timeout=PATIENCE_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        found = parsed(answer.read().decode())
    assert found["kafkashark_api_exchanges_total"]["Produce",] == 53
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{url}/more", timeout=PATIENCE_S)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, b"")


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    """A collector: its URL, and what it was sent."""
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append((self.path, self.headers["Content-Type"], body))
            self.send_response(200 if len(bodies) == 1 else 503)
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    thread.join()
    server.server_close()


def test_otlp_has_the_same_figures(
    collector: tuple[str, list[Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    url, bodies = collector
    demo = str(CAPTURES / "demo.pcap")
    found = exported(tmp_path, demo)
    assert main(["exporter", demo, "--otlp", url]) == 0
    ((path, kind, body),) = bodies
    assert (path, kind) == ("/v1/metrics", "application/json")
    message = ParseDict(body, ExportMetricsServiceRequest())
    counted = 0
    for metric in message.resource_metrics[0].scope_metrics[0].metrics:
        for point in getattr(metric, metric.WhichOneof("data")).data_points:
            label = tuple(each.value.string_value for each in point.attributes)
            if metric.WhichOneof("data") == "histogram":
                assert point.count == found[f"{metric.name}_count"][label]
                assert list(point.bucket_counts)[-1] == point.count - _below(found, metric, label)
            else:
                assert point.as_int == found[metric.name][label]
            counted += 1
    assert counted > 100
    assert main(["exporter", demo, "--otlp", url]) == 2
    assert "the collector refuses metrics: HTTP 503" in capsys.readouterr().err
    assert main(["exporter", demo, "--otlp", "collector"]) == 2


def _below(found: Values, metric: Any, label: tuple[str, ...]) -> float:
    """Return the number of values up to the last bound."""
    buckets = found[f"{metric.name}_bucket"]
    return max(n for (*names, le), n in buckets.items() if tuple(names) == label and le != "+Inf")


def test_an_address_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["exporter", str(CAPTURES / "demo.pcap"), "--listen", address]) == 2
    assert f"--listen {address}: Address already in use" in capsys.readouterr().err


def test_dashboard_and_page_name_the_families(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exporter", "--dashboard"]) == 0
    board = json.loads(capsys.readouterr().out)
    expressions = [
        target["expr"] for panel in board["panels"] for target in panel.get("targets", ())
    ]
    families = list(all_families())
    series = {each.name for each in families} | {
        f"{each.name}_{part}"
        for each in families
        if each.kind == HISTOGRAM
        for part in ("bucket", "sum", "count")
    }
    named = set(re.findall(r"kafkashark_\w+", " ".join(expressions)))
    assert named <= series
    labels = {label for each in families for label in each.labels} | {"le"}
    for found in re.findall(r"by \(([^)]*)\)", " ".join(expressions)):
        assert set(found.split(", ")) <= labels
    page = (ROOT / "docs" / "exporter.md").read_text(encoding="utf-8")
    for each in families:
        prefix = next((p for p in DIMENSIONS if each.name.startswith(f"kafkashark_{p}_")), "")
        short = each.name.removeprefix(f"kafkashark_{prefix}_")
        name = re.fullmatch(r"kafkashark_capture_(\w+)_total", each.name)
        assert any(
            f"`{shown}`" in page
            for shown in (each.name, f"…{short}", name[1] if name else each.name)
        ), each.name
