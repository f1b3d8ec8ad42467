"""Request logs as captures: each line is an exchange, whatever its layout; bad ones are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dissector.errors import CaptureError, UsageError
from dissector.public import open_capture
from tests.dissector.request_log.log_samples import (
    HEARTBEAT,
    compact,
    exchange,
    line,
    protocol_object,
)

END_NS = 1_795_713_898_835_000_000
"""The time of `line`, 2026-11-26 17:24:58.835 UTC."""


def exchanges_of(*files: str | bytes) -> list[Any]:
    contents = [each.encode() if isinstance(each, str) else each for each in files]
    return list(open_capture(contents))


def problems_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "kafka-request.log"
    path.write_text(text)
    capture = open_capture(str(path))
    return [each.what for window in capture.windows() for _, each in window.problems]


def test_a_line_is_an_exchange() -> None:
    (found,) = exchanges_of(line())
    assert (found.api, found.api_version, found.correlation_id) == ("Heartbeat", 3, 7)
    assert (found.client, found.broker) == ("127.0.0.1:56684", "127.0.0.1:9092")
    assert (found.client_id, found.status, found.errors) == (
        "bill",
        "answered",
        ["REBALANCE_IN_PROGRESS"],
    )
    assert found.response_time_ns == END_NS
    assert found.request_time_ns == END_NS - 2_925_000
    assert found.request.body["member_id"] == "m-1"


@pytest.mark.parametrize(
    "text",
    [
        f"2026-11-26T17:24:58.835Z stdout F {line(time='2001-01-01 00:00:00,000')}",
        f"2026-11-26T18:24:58.835+0100 broker-1 kafka: Completed request:{compact(exchange())}\n",
        json.dumps({"log": line(), "stream": "stdout", "time": "2026-11-26T17:24:59Z"}) + "\n",
        json.dumps(
            {
                "@timestamp": "2026-11-26T17:24:58.835Z",
                "level": "DEBUG",
                "message": f"Completed request:{compact(exchange())}",
            }
        ),
        json.dumps(
            {
                "instant": {"epochSecond": END_NS // 10**9, "nanoOfSecond": 835_000_000},
                "loggerName": "kafka.request.logger",
                "message": f"Completed request:{compact(exchange())}",
            }
        ),
        json.dumps(
            {"timestamp": END_NS // 10**6, "message": f"Completed request:{compact(exchange())}"}
        ),
    ],
    ids=["kubernetes", "a zone", "docker", "ECS", "log4j's JSON", "ms since the epoch"],
)
def test_layouts(text: str) -> None:
    (found,) = exchanges_of(text)
    assert found.response_time_ns == END_NS


def test_times_without_a_zone() -> None:
    data = line().encode()
    for zone, minutes in (("Europe/Berlin", 60), ("-03:30", -210), ("UTC", 0)):
        (found,) = open_capture(data, timezone=zone)
        assert found.response_time_ns == END_NS - minutes * 60 * 10**9
    with pytest.raises(UsageError, match="timezone 'Mars': not a zone"):
        open_capture(data, timezone="Mars")


def test_messages_of_a_proxy() -> None:
    head = "2026-11-26 17:24:58 DEBUG ProtocolLoggerFilter "
    text = "".join(
        f"{head}{body} sessionId={session} direction=x\n"
        for session in ("a1", "b2")
        for body in (
            protocol_object("REQUEST", HEARTBEAT),
            protocol_object("RESPONSE", {"throttleTimeMs": 0, "errorCode": 27}),
        )
    )
    text += f"{head}{protocol_object('REQUEST', None, api='SASL_AUTHENTICATE', version=2)}\n"
    found = exchanges_of(text)
    assert [each.api for each in found].count("Heartbeat") == 2
    assert len({each.connection for each in found if each.api == "Heartbeat"}) == 2
    assert {each.status for each in found if each.api == "Heartbeat"} == {"answered"}


def test_rotated_and_concurrent_logs_are_one_capture(tmp_path: Path) -> None:
    def at(second: int, number: int, broker: int = 1) -> str:
        connection = f"10.0.0.{broker}:9092-10.0.0.9:5000-0-1"
        value = exchange(correlation_id=number, connection=connection)
        return line(value, f"2026-11-26 17:24:{second:02},000")

    older, newer, other = (tmp_path / name for name in ("r.log.1.gz", "r.log", "other.log"))
    older.write_bytes(gzip.compress((at(1, 1) + at(2, 2)).encode()))
    newer.write_text(at(5, 3) + at(6, 4))
    other.write_text(at(1, 1, broker=2) + at(5, 2, broker=2))
    found = list(open_capture([str(newer), str(other), str(older)]))
    by_broker = {
        broker: [each for each in found if each.broker == broker]
        for broker in ("10.0.0.1:9092", "10.0.0.2:9092")
    }
    assert [each.correlation_id for each in by_broker["10.0.0.1:9092"]] == [1, 2, 3, 4]
    assert [each.correlation_id for each in by_broker["10.0.0.2:9092"]] == [1, 2]
    assert len({each.connection for each in found}) == 2
    times = [each.request_time_ns or 0 for each in found]
    assert times == sorted(times)
    assert not any(each.problems for each in found)


def test_bad_lines_are_named_and_nothing_else_is_lost(tmp_path: Path) -> None:
    whole = line()
    lines = [
        whole,
        whole[:300] + "\n",
        whole[:200] + whole,
        line(exchange(key=999)),
        line(exchange(version=90, correlation_id=8)),
        line(exchange(request={**HEARTBEAT, "newField": 1, "another": 2}, correlation_id=9)),
        line(exchange(connection="nowhere")),
        f"Completed request:{compact(exchange())}\n",
        line(exchange(request={**HEARTBEAT, "generationId": 2**40})),
        line(exchange(total_ms=-1)),
        "[2026-11-26 17:24:58,835] INFO something else {\n",
        "\0\x1b[31m nonsense }{\n",
        line(exchange(correlation_id=10)),
    ]
    path = tmp_path / "kafka-request.log"
    path.write_text("".join(lines))
    found = list(open_capture(str(path)))
    assert [each.correlation_id for each in found] == [7, 7, 8, 9, 10]
    problems = problems_of(tmp_path, "".join(lines))
    assert sorted(problems) == [
        "line 10: no totalTimeMs",
        "line 4: unknown API 999: the message is lost",
        "line 5: Heartbeat v90 is not known: read as v4",
        "line 6: unknown field another of Heartbeat v3 request: left out",
        "line 6: unknown field newField of Heartbeat v3 request: left out",
        "line 7: no connection as address:port-address:port-number",
        "line 8: no date and time before the message: it is left out",
        "line 9: the message can't be encoded: "
        "generationId: 1099511627776 is not a number of this size",
        "lines 2, 3: the message is cut off, or mixed with another line: it is lost",
    ]


def test_fields_that_a_release_named_otherwise() -> None:
    renamed = {"group": "billing", "generation": 3, "member": "m-1", "groupInstanceId": None}
    (found,) = exchanges_of(line(exchange(request=renamed)))
    assert found.request.body["group_id"] == "billing"
    assert found.request.body["generation_id"] == 3


def test_text_that_is_no_request_log() -> None:
    with pytest.raises(CaptureError, match="not a capture: text"):
        exchanges_of("[2026-11-26 17:24:58,835] INFO started (kafka.server.KafkaServer)\n")


DATED = "[2026-11-26 17:24:58,835] "


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("text", "count", "problem"),
    [
        ("x" * (10 << 20), 0, ""),
        (DATED + "Completed request:{" + "[" * (10 << 20), 0, "is cut off"),
        (DATED + "Completed request:" + '{"a":' * 100_000 + "1" + "}" * 100_000, 0, "is cut off"),
        (DATED + "Completed request:{" * 300_000, 0, "is cut off"),
        (DATED + 'Completed request:{"a":' * 300_000, 0, "is cut off"),
        ("2026-11-26 " * 900_000 + "Completed request:{}", 0, "no date and time"),
        (line().replace("billing", "bi\0ing"), 0, "is cut off"),
        ("something {\n" * 100_000, 0, ""),
        ('{ "header" : { "type" :\n{\n', 0, "is cut off"),
        (line().replace("billing", "x" * (9 << 20)), 0, "is not a number of this size"),
        (line().replace("2.925", "1e999"), 0, "no totalTimeMs"),
        (line().replace("2.925", "NaN").replace("0.619", "NaN"), 0, "no totalTimeMs"),
        (line().replace("0.619", "-Infinity"), 1, ""),
        (line().replace("billing", r"\ud800"), 0, "can't be written as UTF-8"),
        (line().replace('"bill"', r'"\ud800"'), 1, ""),
        (line().replace(":7,", f":{'9' * 5000},"), 0, "is cut off"),
        *(
            (line(time=time), count, problem)
            for time, count, problem in (
                ("2026-11-26T17:24:58.835+09:00", 1, ""),
                ("2026-11-26 17:24:58,835 -0330", 1, ""),
                ("1970-01-01 00:00:00,000", 1, ""),
                ("9999-12-31 23:59:59,999", 0, "no date and time"),
                ("0001-01-01 00:00:00,000", 0, "no date and time"),
                ("2026-02-30 00:00:00,000", 0, "no date and time"),
                ("2026-11-26T17:24:58.835+99:99", 0, "no date and time"),
            )
        ),
    ],
)
def test_extreme_lines(tmp_path: Path, text: str, count: int, problem: str) -> None:
    """Between two good lines; in linear time."""
    path = tmp_path / "kafka-request.log"
    path.write_text(f"{line()}{text}\n{line()}")
    windows = list(open_capture(str(path)).windows())
    assert sum(len(each.exchanges) for each in windows) == count + 2
    found = [each.what for window in windows for _, each in window.problems]
    assert len(found) == bool(problem)
    assert all(problem in each and len(each) < 300 for each in found)


def test_bytes_that_are_no_text() -> None:
    data = line().encode()
    bad = data.replace(b"billing", b"bi\xff\xfeing")
    found = list(open_capture(b"\xff\xfe" + data + b"\0" * 100_000 + b"\n" + bad))
    assert [each.request.body["group_id"] for each in found] == ["billing", "bi\ufffd\ufffding"]


@pytest.mark.parametrize("size", [10**30, -1, "x"])
def test_sizes_of_records_that_are_none(tmp_path: Path, size: object) -> None:
    partition = {"index": 0, "recordsSizeInBytes": size}
    data = [{"name": "orders", "partitionData": [partition]}]
    request = {"transactionalId": None, "acks": -1, "timeoutMs": 5000, "topicData": data}
    text = line(exchange(key=0, name="PRODUCE", version=9, request=request, response=""))
    (problem,) = problems_of(tmp_path, text)
    assert "the message can't be encoded" in problem


@pytest.mark.parametrize("cut", range(0, 1100, 97))
def test_hostile_lines(cut: int) -> None:
    """Any cut and any nesting is at most a problem."""
    text = line() + line()[:cut] + "[" * 5000 + "\n" + '{"a":' * 3000 + "\n" + line()[cut:]
    assert exchanges_of(text)
