"""Captured text can't control a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.cli.declared.row_options import ROW_FORMATS
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\n\u202e"


def evil_capture(path: Path) -> str:
    wire = tcp_captures.Wire()
    connection = (
        wire.connect()
        .syn()
        .client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1, group_id="g"))
    )
    connection.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 1))
    text = EVIL + "\udcff"
    record = cli_traffic.Record(
        key=EVIL.encode(), value=EVIL.encode(), headers=((EVIL, EVIL.encode()),), timestamp=1
    )
    records = cli_traffic.build_records([cli_traffic.new_batch([record])])
    data = [{"name": text, "partition_data": [{"index": 0, "records": records}]}]
    connection.client(
        cli_traffic.request_frame(
            cli_traffic.PRODUCE, 9, 2, client_id=text, topic_data=data, acks=1
        )
    )
    answer = [{"index": 0, "error_code": 1, "error_message": text}]
    connection.broker(
        cli_traffic.response_frame(
            cli_traffic.PRODUCE, 9, 2, responses=[{"name": text, "partition_responses": answer}]
        )
    )
    return tcp_captures.write(path, wire.packets)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "words",
    [
        *([name, "-T", form] for name in ("pairs", "records", "streams") for form in ROW_FORMATS),
        ["pairs", "-T", "ndjson", "--bodies"],
        ["pairs", "-T", "csv", "--bodies"],
        ["stats"],
        ["stats", "-T", "ndjson"],
        ["dissect", "-V", "-x"],
        ["dissect", "-T", "ndjson"],
        ["dissect", "-T", "fields", "-e", "client_id", "-e", "request.topic_data.name"],
    ],
)
def test_control_sequences_are_escaped(good: Run, tmp_path: Path, words: list[str]) -> None:
    path = evil_capture(tmp_path / "a.pcap")
    file = tmp_path / "out"
    good(*words, path, "-o", file)
    if "parquet" in words:
        return
    text = file.read_bytes().decode().replace("\r\n", "\n")
    ours = "\n\t" if "fields" in words else "\n"
    assert all(c in ours or c.isprintable() for c in text)
    if words[0] != "streams":
        assert "owned" in text
    shown = good(*words, path).out.replace("\r\n", "\n")
    assert shown == text
