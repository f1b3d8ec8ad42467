"""Reports as pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from replay.report.latency_plots import duration_text
from replay.report.report import Report, html_lines
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import full, made, outcomes, produced

_EMPTY = {"meta", "path", "polyline", "input", "wbr"}


class _Page(HTMLParser):
    """Checks the nesting of elements, and collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.findings = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.findings += ("class", "finding") in attrs
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _page(report: Report, shown: int = 500) -> _Page:
    page = _Page()
    page.feed("\n".join(html_lines(report, shown)))
    page.close()
    assert not page.open
    return page


def test_the_page_shows_all_parts_of_a_report() -> None:
    page = _page(made())
    for text in ("3 of 4 responses differ", "MESSAGE_TOO_LARGE", "is telemetry", "x-orders", "p99"):
        assert text in page.text
    assert page.findings == 3
    assert page.tags.count("svg") == 1


def test_the_page_is_self_contained() -> None:
    text = "\n".join(html_lines(made()))
    assert not re.search(r"src=|href=[^#]*[^#\"]#|url\(|@import", text)
    assert "default-src 'none'" in text


def test_the_page_shows_the_first_differences_only() -> None:
    page = _page(made(), shown=1)
    assert page.findings == 1
    assert "the first 1 of 3" in page.text


def test_captured_text_is_escaped() -> None:
    evil = outcome("Produce", 7, produced(topic="<script>"), produced(topic='"><img>'))
    tags = _page(made(evil)).tags
    assert "img" not in tags
    assert tags.count("script") == 1  # ours


def test_a_replay_without_differences() -> None:
    page = _page(made(outcomes()[0]))
    assert page.findings == 0
    assert "answers as captured" in page.text


def test_the_page_shows_the_lag_of_requests() -> None:
    late = _page(made(outcomes()[0])).text
    assert re.search(r"late\s*p50 3\.0\d+ ms, p95 3\.0\d+ ms, p99 3\.0\d+ ms, max 3\.000 ms", late)
    assert "max 3" not in _page(made(outcomes()[1])).text


def test_latencies_are_side_by_side_and_differences_before_the_plots() -> None:
    text = _page(full()).text
    assert re.search(r"p50 captured\s*p50 replayed\s*p95 captured\s*p95 replayed", text)
    headings = [
        "Responses",
        "Latency in ms",
        "Differences by field",
        "Differences, 3",
        "Latency: captured",
    ]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    for fact in ("cluster c-1", "Kafka 4.1", "answered in another version", "the upgrade"):
        assert fact in text


def test_an_axis_has_room_for_its_label() -> None:
    labels = [duration_text(ms) for ms in (0.0123, 0.5, 42.4242, 999.4, 999.9, 2360.0, 5e6)]
    assert labels == ["0.0123 ms", "0.5 ms", "42.4 ms", "999 ms", "1 s", "2.36 s", "5,000 s"]
    assert max(map(len, labels)) <= 9
