"""Spans of Produce and Fetch: parents, attributes, ids, and export to a collector."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dissector.cli import main
from dissector.protocol.records import Record, new_batch
from tests import tcp_captures
from tests.conform.produce_scenes import NOW_MS, produced
from tests.corpus import FOLDER
from timeline.cli import timeline

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
DEMO = str(FOLDER / "demo.pcap")


def run(*words: str) -> int:
    return main(["timeline", *words], [("timeline", timeline)])


def record(traceparent: str | None) -> Record:
    headers = () if traceparent is None else (("traceparent", traceparent.encode()),)
    return Record(value=b"x", timestamp=NOW_MS, headers=headers)


def spans_in(text: str) -> list[dict[str, Any]]:
    """Return the spans of lines of JSON, with their attributes as a dict."""
    found = []
    for line in text.splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for span in resource["scopeSpans"][0]["spans"]:
                values = {each["key"]: each["value"] for each in span["attributes"]}
                found.append(span | {"attributes": values})
    return found


def spans_of(folder: Path, *records: Record, **values: Any) -> list[dict[str, Any]]:
    """Return the spans of a Produce request."""
    scene = produced(new_batch(records).to_bytes(), **values)
    path = tcp_captures.write(folder / "a.pcap", scene.wire.packets)
    out = folder / "out.jsonl"
    assert run(path, "--otlp", str(out)) == 0
    return spans_in(out.read_text())


def test_a_traceparent_header_names_the_parent(tmp_path: Path) -> None:
    (span,) = spans_of(tmp_path, record(f"00-{TRACE}-{PARENT}-01"), base_offset=41)
    assert (span["traceId"], span["parentSpanId"], span["flags"]) == (TRACE, PARENT, 1)
    assert (span["name"], span["kind"]) == ("send orders", 4)
    assert int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"])
    attributes = span["attributes"]
    assert attributes["messaging.system"] == {"stringValue": "kafka"}
    assert attributes["messaging.destination.name"] == {"stringValue": "orders"}
    assert attributes["messaging.destination.partition.id"] == {"stringValue": "0"}
    assert attributes["messaging.kafka.offset"] == {"intValue": "41"}
    assert "status" not in span


def test_records_of_one_parent_share_a_span(tmp_path: Path) -> None:
    other = f"00-{TRACE}-{'c' * 16}-00"
    headers = [f"00-{TRACE}-{PARENT}-01", other, f"00-{TRACE}-{PARENT}-01", None]
    spans = spans_of(tmp_path, *map(record, headers))
    counts = {
        span.get("parentSpanId", ""): span["attributes"]["messaging.batch.message_count"]
        for span in spans
    }
    assert {key: int(value["intValue"]) for key, value in counts.items()} == {
        PARENT: 2,
        "c" * 16: 1,
        "": 1,
    }
    assert len({span["spanId"] for span in spans}) == 3


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\x1b[2J",
    ],
)
def test_an_invalid_header_gives_no_parent(header: str, tmp_path: Path) -> None:
    (span,) = spans_of(tmp_path, record(header))
    assert "parentSpanId" not in span
    assert span["traceId"] != TRACE


def test_errors_set_the_status(tmp_path: Path) -> None:
    (span,) = spans_of(tmp_path, record(None), error_code=6)
    assert span["status"] == {"code": 2, "message": "NOT_LEADER_OR_FOLLOWER"}
    assert span["attributes"]["error.type"] == {"stringValue": "NOT_LEADER_OR_FOLLOWER"}


def test_ids_are_reproducible(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        assert run(DEMO, "--otlp", "-") == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    ids = [span["spanId"] for span in spans_in(texts[0])]
    assert len(set(ids)) == len(ids) > 50


def test_a_filter_selects_exchanges(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(DEMO, "--otlp", "-", "-Y", "api == Fetch") == 0
    assert {span["kind"] for span in spans_in(capsys.readouterr().out)} == {5}


@contextmanager
def collector(status: int) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Run a collector that answers with a status; yield its address and received requests."""
    got: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


def test_a_collector_receives_the_same_spans(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(DEMO, "--otlp", "-") == 0
    wanted = [(each["traceId"], each["name"]) for each in spans_in(capsys.readouterr().out)]
    with collector(200) as (url, got):
        assert run(DEMO, "--otlp", url) == 0
    assert {path for path, _ in got} == {"/v1/traces"}
    found = [
        (span.trace_id.hex(), span.name)
        for _, body in got
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for span in resource.scope_spans[0].spans
    ]
    assert found == wanted
    assert capsys.readouterr().err == f"{len(wanted)} spans sent\n"


def test_a_collector_that_refuses_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with collector(503) as (url, _):
        secret = url.replace("http://", "http://user:geheim@")
        assert run(DEMO, "--otlp", f"{secret}/v1/traces?key=geheim") == 2
    assert capsys.readouterr().err == (
        f"kafkashark: {url}/v1/traces: the collector refuses spans: HTTP 503\n"
    )


def test_an_unreachable_collector_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with collector(200) as (url, _):
        pass
    assert run(DEMO, "--otlp", url) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"kafkashark: {url}/v1/traces: spans can't be sent: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("-T", "csv"), ("-o", "x")])
def test_spans_are_written_in_place_of_events(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DEMO, "--otlp", "-", *words) == 2
    assert "--otlp writes spans in place of events" in capsys.readouterr().err


def test_the_error_without_the_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(
        sys.modules,
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2",
        None,
    )
    assert run(DEMO, "--otlp", "http://127.0.0.1:1") == 2
    assert "pip install 'kafkashark[otlp]'" in capsys.readouterr().err
