"""Reports of captures, as parsed HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from dissector.cli import main
from report.cli import report
from tests import default_frames, tcp_captures

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\x1b[31m\u2028\u202e&\"`${1}"
)
"""A name that would run, colour, break lines or turn text around."""


def run(*words: str | Path) -> int:
    return main(["report", *map(str, words)], [("report", report)])


@dataclass
class ParsedPage(HTMLParser):
    """
    A parsed HTML page.

    Attributes:
        tags: Each start tag with its attributes, in order.
        texts: The text of each `script` and `style`, in order.
        tables: Id -> rows of texts, the headings first.
        text: All other text.
    """

    source: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._rows: list[list[str]] = []
        self._cell: list[str] | None = None
        self._within = ""
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        match tag:
            case "details":
                self._rows = self.tables.setdefault(dict(attrs).get("id") or "", [])
            case "tr":
                self._rows.append([])
            case "th" | "td":
                self._rows[-1].append("")
                self._cell = self._rows[-1]
            case "script" | "style":
                self._within = tag
                self.texts.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self._cell = None
        if tag == self._within:
            self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within:
            self.texts[-1] = (self._within, self.texts[-1][1] + data)
        elif self._cell is not None:
            self._cell[-1] += data
        else:
            self.text += data

    def dicts(self, table: str) -> list[dict[str, str]]:
        """Return the rows of a table by heading."""
        heading, *rows = self.tables[table]
        return [dict(zip(heading, row, strict=True)) for row in rows]

    @property
    def plots(self) -> dict[str, Any]:
        """The data of the plots."""
        found: dict[str, Any] = json.loads(self.texts[1][1])
        return found


def page_of(folder: Path, *words: str | Path) -> ParsedPage:
    """Write a report; return the page."""
    output = folder / "report.html"
    assert run(*words, "-o", output) == 0
    return ParsedPage(output.read_text(encoding="utf-8"))


def hostile_capture(folder: Path, names: Iterable[str] = (HOSTILE,)) -> str:
    """Write a capture with these names of clients, topics and groups."""
    wire = tcp_captures.Wire()
    for number, name in enumerate(names):
        connection = wire.connect(50_000 + number).syn()
        # A connection beginning with such a name is not recognised as Kafka.
        connection.client(default_frames.request(18, 0, 0, "plain"))
        connection.broker(default_frames.response(18, 0, 0, error_code=0))
        connection.client(default_frames.request(3, 4, 1, name, topics=[{"name": name}]))
        topic = {"error_code": 17, "name": name, "is_internal": False, "partitions": []}
        connection.broker(default_frames.response(3, 4, 1, topics=[topic]))
        connection.client(default_frames.request(12, 2, 2, name, group_id=name, member_id=name))
        connection.broker(default_frames.response(12, 2, 2, error_code=25))
    return tcp_captures.write(folder / "hostile.pcap", wire.packets)
