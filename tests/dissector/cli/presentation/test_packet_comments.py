"""Comments of packets in pcapng files: in details, filters, columns, and in what is written."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dissector.engine.exchanges import exchange_facts
from tests.dissector.capture.handmade_packets import block, interface, section
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run
from tests.tcp_captures import Wire

COMMENT, HASH, END = 1, 3, 0
ASKED = range(3, 10, 2)
"""The packets with messages: requests and responses in turn."""


def options(order: str, *found: tuple[int, bytes]) -> bytes:
    parts = (
        struct.pack(f"{order}HH", code, len(text)) + text + bytes(-len(text) % 4)
        for code, text in (*found, (END, b""))
    )
    return b"".join(parts)


def commented(order: str, comments: dict[int, bytes]) -> bytes:
    """Return a capture of a Heartbeat and a Metadata; `comments`: the options of its packets."""
    wire = Wire()
    connection = wire.connect().syn()
    for number, key in enumerate((cli_traffic.HEARTBEAT, cli_traffic.METADATA)):
        connection.client(cli_traffic.request_frame(key, 4, number))
        connection.broker(cli_traffic.response_frame(key, 4, number))
    blocks = [section(order), interface(order=order)]
    for number, packet in enumerate(wire.packets):
        ticks, size = packet.time_ns // 1000, len(packet.data)
        head = struct.pack(f"{order}IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, size, size)
        content = head + packet.data + bytes(-size % 4)
        blocks.append(block(6, content + comments.get(number, b""), order))
    return b"".join(blocks)


@pytest.fixture(params=["<", ">"])
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    order = request.param
    first = options(order, (HASH, b"\0abc"), (COMMENT, b"why so late?"), (COMMENT, b"ask anna"))
    path = tmp_path / "commented.pcapng"
    path.write_bytes(
        commented(order, {ASKED[0]: first, ASKED[3]: options(order, (COMMENT, b"ok"))})
    )
    return path


@pytest.mark.thinned(4)
@pytest.mark.parametrize("worthwhile", [1, 10**9])
def test_comments_are_names_in_filters_and_columns(
    good: Run, capture: Path, monkeypatch: pytest.MonkeyPatch, worthwhile: int
) -> None:
    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", worthwhile)

    def apis(text: str) -> list[str]:
        return [row["api"] for row in good("pairs", capture, "-Y", text, "-T", "ndjson").rows]

    assert apis('frame.comment contains "LATE" or frame.comment == "ok"') == ["Metadata"]
    assert apis('frame.comment contains "late"') == ["Heartbeat"]
    assert apis("not frame.comment") == []
    assert apis("frame.comment == 'ask anna' and frame.len > 0") == ["Heartbeat"]
    rows = good("pairs", capture, "--columns", "frame.comment", "-T", "ndjson").rows
    assert rows == [{"frame.comment": ["why so late?", "ask anna"]}, {"frame.comment": "ok"}]


def test_comments_of_a_message_are_in_its_details(good: Run, capture: Path) -> None:
    out = good("dissect", capture, "-V").out
    assert out.count("  packet comment: ") == 3
    assert "  packet comment: why so late?\n  packet comment: ask anna\n" in out
    fields = good("dissect", capture, "--columns", "kind,frame.comment").lines
    assert fields == ["request\twhy so late?,ask anna", "response\t", "request\t", "response\tok"]


def test_export_keeps_comments(good: Run, run: Run, capture: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    for text in ("frame.len > 10 and api == Heartbeat", "frame.comment contains late"):
        done = run("export", capture, "-o", part, "-Y", text)
        assert (done.status, done.err) == (0, "")
    rows = good("pairs", part, "--columns", "api,frame.comment", "-T", "ndjson").rows
    assert rows == [{"api": "Heartbeat", "frame.comment": ["why so late?", "ask anna"]}]


def test_hostile_comments_are_escaped_masked_and_bounded(good: Run, tmp_path: Path) -> None:
    hostile = {
        ASKED[0]: options("<", (COMMENT, b"a\x1b[2J\n\xff"), (COMMENT, b"password=hunter2")),
        ASKED[1]: options("<", *[(COMMENT, b"x" * 40_000)] * 3),
        ASKED[2]: options("<", *[(COMMENT, b"")] * 5000),
        ASKED[3]: struct.pack("<HH", COMMENT, 60_000) + b"cut.",
    }
    path = tmp_path / "hostile.pcapng"
    path.write_bytes(commented("<", hostile))
    out = good("dissect", path, "-V").out
    assert "  packet comment: a\\x1b[2J\\x0a\\xff\n" in out
    assert "hunter2" not in out
    assert out.count("packet comment: ") == 2 + 2 + 100
    assert out.count("x" * 1000) == 65
    assert "hunter2" in good("dissect", path, "-V", "--show-secrets").out
    assert len(good("pairs", path, "-T", "csv", "--columns", "frame.comment").lines) == 3
