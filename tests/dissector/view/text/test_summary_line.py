from __future__ import annotations

from typing import Any

import pytest

from dissector.cli import main
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.view.text.summary_line import LineStyle, MessageSummary, message_line
from tests.corpus import FOLDER
from tests.default_frames import request, response

BEGIN_NS = 1_700_000_000_000_000_000
START = "     8     0.001000   #3        10.0.0.1:50000 -> 10.0.0.2:9092       "


def produce(client_id: str | None = "rdkafka") -> Message:
    return decode_request(request(0, 9, 7, client_id, acks=1, timeout_ms=5, topic_data=[])[4:])


def seen(message: Message, **more: Any) -> MessageSummary:
    where = {"packet": 8, "time_ns": BEGIN_NS + 1_000_000, "connection": 3}
    ends = {"source": "10.0.0.1:50000", "target": "10.0.0.2:9092"}
    return MessageSummary(message, **{**where, **ends, **more})


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (
            seen(produce(), topics=["orders"], note="no response"),
            "  Produce v9 request                id 7  rdkafka  orders  no response",
        ),
        (
            seen(produce("\x1b]0;x\x07"), topics=["a\nb", "c", "d", "e", "f"]),
            r"  Produce v9 request                id 7  \x1b]0;x\x07  a\x0ab, c, d and 2 more",
        ),
        (
            seen(
                decode_response(response(0, 9, 7)[4:], 0, 9),
                errors=["NOT_LEADER_OR_FOLLOWER", "ERROR_999"],
                latency_ms=1.25,
                problems=1,
            ),
            "  Produce v9 response               id 7  NOT_LEADER_OR_FOLLOWER, ERROR_999"
            "  1.250 ms  [1 problem]",
        ),
        (
            seen(decode_response(b"\0\0\0\x07", None, None)),
            "  unknown response                  id 7",
        ),
        (seen(Message("request", b"x", 1), api="SaslToken"), "  SaslToken request"),
        (seen(produce(None)), "  Produce v9 request                id 7"),
    ],
)
def test_the_line_of_a_message(what: MessageSummary, expected: str) -> None:
    assert message_line(what, LineStyle(BEGIN_NS)) == START + expected


def test_lines_from_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dissect", str(FOLDER / "demo.pcap"), "-c", "45"]) == 0
    lines = capsys.readouterr().out.splitlines()
    client, broker = "127.0.0.1:58326", "127.0.0.1:27891"
    assert lines[0] == (
        f"     4     0.000919   #0       {client} -> {broker}       "
        "ApiVersions v3 request            id 1  demo"
    )
    assert lines[1] == (
        f"     6     0.002052   #0       {broker} -> {client}       "
        "ApiVersions v3 response           id 1  1.133 ms"
    )
    assert lines[44] == (
        "   119     1.566754   #8       127.0.0.1:58352 -> 127.0.0.1:27891       "
        "Metadata v13 request              id 5  billing-1  demo.orders"
    )
