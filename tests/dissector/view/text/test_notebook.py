"""Summaries for notebooks: HTML is escaped, secrets are masked."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dissector.public import decode_request, open_capture
from dissector.view.text.detail_tree import detail_tree
from dissector.view.text.notebook import MAX_TREE_LINES, facts_html, page_html
from kafkashark import Plan, conform, replay
from tests import default_frames, tcp_captures
from tests.dissector.cli import cli_traffic

CAPTURES = Path(__file__).parents[4] / "captures"
ACKS = CAPTURES / "kafka4-librdkafka-acks.pcap"
SCRIPT = "<script>alert(1)</script>"


class Balanced(HTMLParser):
    """Checks that all elements are closed, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def hostile(tmp_path: Path) -> str:
    """Return a capture with markup as client id and group."""
    wire = tcp_captures.Wire()
    frame = cli_traffic.request_frame(cli_traffic.HEARTBEAT, 0, 1, group_id=SCRIPT)
    wire.connect().syn().client(frame)
    return tcp_captures.write(tmp_path / f"{SCRIPT.replace('/', '')}.pcap", wire.packets)


def test_markup_in_captures_is_escaped(tmp_path: Path) -> None:
    capture = open_capture(hostile(tmp_path))
    (exchange,) = capture
    assert exchange.request is not None
    for each in (capture, exchange, exchange.request, Plan.of(capture)):
        html = each._repr_html_()
        assert "<script" not in html
        assert "script" not in Balanced(html).seen
    assert "&lt;script&gt;" in exchange._repr_html_()


def test_facts_and_pages_are_escaped() -> None:
    assert "<script" not in facts_html(SCRIPT, {SCRIPT: [SCRIPT], "count": 1234567})
    page = page_html(SCRIPT, [f'<p class="a">{SCRIPT}</p>'])
    assert Balanced(page).seen == {"div", "b", "iframe"}


def test_long_trees_are_cut() -> None:
    topics = [{"name": f"t{number}"} for number in range(MAX_TREE_LINES)]
    message = decode_request(default_frames.request(3, 4, 7, topics=topics)[4:])
    lines = detail_tree(message)
    shown = message._repr_html_()
    assert f"\n... {len(lines) - MAX_TREE_LINES:,} more lines</pre>" in shown
    assert shown.count("\n") == MAX_TREE_LINES - 1
    few = decode_request(default_frames.request(3, 4, 7, topics=topics[:5])[4:])
    assert "more lines" not in few._repr_html_()


def test_empty_facts_are_left_out() -> None:
    html = facts_html("Facts", {"none": None, "empty": [], "zero": 0, "count": 1234567})
    assert "none" not in html
    assert "empty" not in html
    assert "zero" in html
    assert "1,234,567" in html


def test_secrets_are_masked() -> None:
    body = b"\0\0\0\x0d\0user\0hunter2"
    message = decode_request(b"\0\x24\0\0\0\0\0\x01\0\x02me" + body)
    assert message.body is not None
    assert "hunter2" not in f"{message!r}{message._repr_html_()}"
    assert "***" in message._repr_html_()
    assert repr(message) == "<Message SaslAuthenticate v0 request, id 1, client 'me', 29 bytes>"


@pytest.mark.parametrize("name", ["kafka4-librdkafka-sasl.pcap", "kafka39-kafka-python-sasl.pcap"])
def test_secrets_of_captures_are_masked(name: str) -> None:
    for exchange in open_capture(CAPTURES / name, filter="api == SaslAuthenticate"):
        assert "***" in exchange._repr_html_()


def test_a_long_message_is_shortened() -> None:
    long = max(
        (each for exchange in open_capture(ACKS) for each in exchange.messages),
        key=lambda message: message.size,
    )
    assert long._repr_html_().count("\n") <= 401


def test_totals_are_shown_after_reading() -> None:
    capture = open_capture(ACKS)
    assert "packets read" not in capture._repr_html_()
    capture.exchanges()
    assert "packets read" in capture._repr_html_()


def test_plan_report_and_verdict() -> None:
    with Plan.of(ACKS) as plan:
        assert repr(plan).startswith(f"<Plan of {ACKS}: ")
        report = replay(plan, "mock")
        assert "requests" in plan._repr_html_()
    verdict = conform(ACKS)
    for each, beginning in ((report, "<Report mock: "), (verdict, "<Verdict ")):
        assert repr(each).startswith(beginning)
        assert "\n" not in repr(each)
        html = each._repr_html_()  # type: ignore[attr-defined]
        assert Balanced(html).seen == {"div", "b", "iframe"}
        assert "&lt;/html&gt;" in html
