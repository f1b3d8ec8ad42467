"""Pages: nested elements, ids that occur once, captured text as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from dissector.view.document.content import (
    Document,
    Facts,
    Finding,
    Findings,
    Notes,
    Section,
    Table,
    TableRow,
    table_of,
)
from dissector.view.document.html_form import html_lines

EVIL = "</script><img src=x onerror='a'>\x1b\u202e\"&"

_EMPTY = {"meta", "input", "path", "wbr"}


class _Page(HTMLParser):
    """Checks the nesting of elements; collects tags, ids and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name == "href" and value]
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def _page(*sections: Section) -> _Page:
    page = _Page()
    page.feed("\n".join(html_lines(Document(EVIL, EVIL, sections, "bad"))))
    page.close()
    assert not page.open
    return page


def _everything(text: str) -> Section:
    blocks = [
        Facts([(text, text)]),
        Notes([text], text, "bad"),
        Findings([Finding(text, [(text, text), ("", [text])], text, "note")], text),
        Table(text, [text], [TableRow([text], "bad", 0.0, 1.0)], 3, text),
    ]
    return Section("all", text, blocks)


def test_captured_text_stays_text() -> None:
    page = _page(_everything(EVIL))
    assert "img" not in page.tags
    assert page.tags.count("script") == 1
    assert page.text.count("onerror") == 16
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", page.text)


def test_ids_occur_once_and_links_lead_to_them() -> None:
    rows = [{"a": 1}]
    tables = [each for title in ("Main", "main", "Filter", "") for each in table_of(title, rows)]
    page = _page(Section("a", "A", tables), Section("b", "B", tables))
    assert len(page.ids) == len(set(page.ids))
    assert {each[1:] for each in page.links} <= set(page.ids)


def test_numbers_are_aligned_and_sorted_as_numbers() -> None:
    rows = [{"what": "x", "count": 1_234, "ms": 0.5, "is": True}, dict.fromkeys(("count", "ms"), 0)]
    rows[1] |= {"what": None, "is": False}
    lines = "\n".join(html_lines(Document("", "", [Section("s", "S", table_of("T", rows))])))
    assert '<td class="n" data-number="1234">1,234</td>' in lines
    assert '<td class="n zero" data-number="0">0</td>' in lines
    assert '<td class="n" data-number="0.5">0.500</td>' in lines
    assert "<td>yes</td>" in lines
    assert lines.count('<th scope="col" class="n">') == 2


def test_a_page_names_what_it_left_out() -> None:
    table = Table("T", ["a"], [TableRow([1])], more=1_500)
    page = _page(Section("s", "S", [table]))
    assert "1,500 more are not shown." in page.text
    assert "1,501" in page.text
