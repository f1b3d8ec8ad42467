"""A verdict as an HTML page."""

from __future__ import annotations

from html.parser import HTMLParser

from conform.report.report_formats import verdict_check
from tests.conform.verdicts import verdict, verdict_of_one_cause


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)


def test_html() -> None:
    known = verdict()
    list(known)[1].known = True
    page = "\n".join(verdict_check(known, "a.pcap").lines("html"))
    parser = _Texts()
    parser.feed(page)
    text = "\n".join(parser.texts)
    assert page.startswith("<!doctype html>")
    assert "img" not in parser.tags
    assert "the name is '<b>\\x1b&'" in text
    assert text.index("Findings") < text.index("request 3 came after 4")
    assert text.rindex("In the baseline") < text.index("the name is")
    assert "1,234: the capture begins in the middle of the connection" in text
    assert '<h1 class="bad">' in page


def test_a_page_without_errors() -> None:
    good = verdict()
    good.kinds.clear()
    assert '<h1 class="good">' in "\n".join(verdict_check(good, "a.pcap").lines("html"))


def test_findings_of_one_cause_are_shown_once() -> None:
    page = "\n".join(verdict_check(verdict_of_one_cause(), "it").lines("html"))
    assert page.count('<details class="finding"') == 1
    assert "2 times more: V03 Metadata (2)" in page
    assert "(once; breaks clients)" in page
