"""Captures of real traffic: public ones with published results, and the project's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dissector import CaptureError, Message, open_capture
from dissector.engine.exchanges.exchange import COLUMNS, Exchange
from dissector.engine.tables.exchange_table import STATUS
from dissector.protocol.embedded.fields import read_embedded
from dissector.protocol.spans import spans
from tests.corpus import each_capture

SHARED = Path(__file__).parents[3] / "../shared/captures"

# MANIFEST.md of the shared captures describes each; `oracles/` has results of their recording
# project: sizes (`req_msg_size`) and latencies (`rrt`, in microseconds).
KAFKA = {
    "00-produce-v2": ("Produce", 2, 1, "console-producer", 117, 46, 16.107, ["topic2"]),
    "00-produce-v7-sw8": (
        *("Produce", 7, 1, "kafka-python-producer-1", 308, 65, 28.415),
        ["quickstart-events"],
    ),
    "00-produce-v9": ("Produce", 9, 47, "console-producer", 152, 55, 1.619, ["zqy-test"]),
    "01-fetch-v12-ok": (
        *("Fetch", 12, 15603, "consumer-console-consumer-8919-1", 116, 17, 499.610),
        ["zqy-test"],
    ),
    "13-leave-group-v4": ("LeaveGroup", 4, 201, "consumer-zzzz12-1", 94, 72, 2.739, []),
    "18-api-versions-v3": ("ApiVersions", 3, 2, "adminclient-1", 49, 435, 4.941, []),
    # A single packet, without response and oracle: its frame is 168 bytes with its size.
    "produce-v9-old": (
        *("Produce", 9, 5, "console-producer", 164, None, None),
        ["quickstart-events"],
    ),
}


@pytest.mark.parametrize("name", KAFKA)
def test_shared_kafka_captures_agree_with_their_oracles(name: str, shared: Path) -> None:
    file = shared / f"captures/kafka/deepflow__{name}.pcap"
    (exchange,) = open_capture(file)
    assert (
        exchange.api,
        exchange.api_version,
        exchange.correlation_id,
        exchange.client_id,
        exchange.request_bytes,
        exchange.response_bytes,
        exchange.latency_ms,
        exchange.topics,
    ) == KAFKA[name]
    assert exchange.status == ("unanswered" if name == "produce-v9-old" else "answered")
    assert exchange.errors == []
    assert exchange.problems == []
    oracle = shared / f"captures/oracles/deepflow__{name}.result"
    if oracle.exists():
        numbers = dict(re.findall(r"(\w+): (?:Some\()?(\d+)\)?", oracle.read_text()))
        assert exchange.response_bytes == int(numbers["resp_msg_size"])
        assert round(exchange.latency_ms * 1000) == int(numbers["rrt"])
        assert f"req_msg_size: Some({exchange.request_bytes})" in oracle.read_text()


def test_table_holds_all_shared_kafka_captures(shared: Path) -> None:
    files = (shared / "captures/kafka").iterdir()
    assert {file.name for file in files} == {f"deepflow__{name}.pcap" for name in KAFKA}


TORTURE = sorted((SHARED / "tcp").iterdir()) if SHARED.is_dir() else []


@pytest.mark.thinned(3)
@pytest.mark.parametrize("file", TORTURE, ids=lambda file: file.name)
def test_shared_tcp_captures_are_read_and_not_recognised_as_kafka(file: Path) -> None:
    capture = open_capture(file)
    if file.suffix == ".snoop":
        with pytest.raises(CaptureError, match="snoop file"):
            list(capture)
        return
    assert list(capture) == []
    spoken = {*capture.reading.correlator.spoken()}
    assert spoken <= {"", "other", "tls"}
    assert capture.reading.packets > 0


# Problems of real traffic, and why: part of the capture's name, problem, API or None for an
# orphan, and side.
KNOWN_PROBLEMS = (
    # librdkafka sends ApiVersions v3 first; its mock cluster refuses that in v0, with fields of
    # later versions.
    ("rdkafka|demo|kafka-python", "bytes are left over", "ApiVersions", "response"),
    # librdkafka's mock cluster writes the tags of Metadata v13 twice.
    ("rdkafka|demo|kafka-python", "bytes are left over", "Metadata", "response"),
    # librdkafka writes fields of older versions.
    ("rdkafka", "bytes are left over", "Metadata", "request"),
    ("rdkafka", "bytes are left over", "AlterUserScramCredentials", "request"),
    # librdkafka's mock cluster answers Produce with acks = 0.
    ("rdkafka|demo|aiokafka", "which expects none", None, "response"),
    # The sweep sends versions that no broker has.
    ("sweep-too-new", "is not known", "ApiVersions", "request"),
    # Clients that close during a Fetch response.
    ("", "the connection was closed before", "Fetch", "response"),
    ("", "the connection was reset before", "Fetch", "response"),
    ("", "were not captured", "Fetch", "response"),
)


@pytest.mark.thinned(3)
@each_capture("soundness")
def test_own_captures(path: Path) -> None:
    """All rows are consistent, all problems known, and all valid bodies re-encode byte for byte."""
    capture = open_capture(path)
    count = 0
    for exchange in capture:
        count += 1
        check_row(exchange, path)
        for problem in exchange.problems:
            assert is_known(path.name, exchange.api, str(problem)), f"{exchange.api}: {problem}"
        for message in exchange.messages:
            check_message(message, exchange)
    reading = capture.reading
    spoken = {*reading.correlator.spoken()}
    assert spoken <= {"", "kafka", "tls"}
    assert count > 0 or spoken == {"tls"}
    assert reading.source.passed_over == {}


def check_row(exchange: Exchange, file: Path) -> None:
    row = exchange.row()
    assert tuple(row) == COLUMNS
    assert row["capture"] == str(file)
    assert row["status"] in STATUS
    request, response = exchange.request, exchange.response
    assert (request is None) == (row["status"] == "orphan")
    assert (response is None) == (row["status"] in ("unanswered", "no_response"))
    for name in ("api_key", "api_version", "client_id"):
        if request is None or exchange.is_token:
            assert row[name] is None
    if row["status"] == "answered":
        assert exchange.response_packet > exchange.request_packet
        assert 0 <= row["latency_ms"] < 60_000
        assert exchange.is_token or request.correlation_id == response.correlation_id
    if row["status"] == "no_response":
        assert row["api"] == "Produce"
        assert request.body.acks == 0
    for message, size in ((request, row["request_bytes"]), (response, row["response_bytes"])):
        assert size == (None if message is None else message.size)


def is_known(name: str, api: str | None, problem: str) -> bool:
    return any(
        re.search(where, name) and what in problem and which == api and problem.startswith(kind)
        for where, what, which, kind in KNOWN_PROBLEMS
    )


def check_message(message: Message, exchange: Exchange) -> None:
    found = read_embedded(message, exchange.request if message.kind == "response" else None)
    assert all(isinstance(each.path, str) for each in found)
    if message.body is None or message.problems or message.schema is None:
        return
    version = message.api_version
    body = message.frame[message.body_start :]
    assert message.schema.codec(version).build(message.body) == body
    tree = spans(message.schema, version, message.frame, message.body_start)
    assert (tree.start, tree.end) == (message.body_start, len(message.frame))
    # The leaves of the tree are consecutive and omit only lengths and tags.
    at = message.body_start
    for leaf in tree.leaves():
        assert at <= leaf.start <= leaf.end
        at = leaf.end
    assert at <= len(message.frame)
