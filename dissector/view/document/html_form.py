"""
A report as one self-contained page of HTML.

It loads nothing: a content security policy allows only the page's own script and style, by hash.
All text passes `html_text`; the scripts set text nodes only. Without scripts all is readable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dissector.view.document.content import (
    Block,
    Cards,
    Document,
    Drawing,
    Facts,
    Finding,
    Findings,
    Notes,
    Section,
    Table,
    TableRow,
)
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text

_ASSETS = Path(__file__).parent / "assets"
_LONG_WORD = re.compile(r"\S{25,}")
_UNIT = r"(?:&#?\w+;|[^&])"
_WORD_PART = re.compile(rf"{_UNIT}{{12,24}}?(?<=[_:.,/-])|{_UNIT}{{24}}")
_POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'"


def html_lines(document: Document) -> Iterator[str]:
    """Yield the lines of the page."""
    script = "\n".join([*document.page.scripts, asset(_ASSETS / "document_tables.js")])
    style = "\n".join([*document.page.styles, asset(_ASSETS / "document.css")])
    maker = version("kafkashark")
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    policy = _POLICY.format(_hash(script), _hash(style))
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f'<meta name="generator" content="kafkashark {maker}">'
    yield f"<title>{html_text(document.title)}</title>"
    yield f"<style>{style}</style>"
    yield "</head>"
    yield "<body>"
    yield '<a class="skip" href="#main">Skip to the report</a>'
    yield from _header_lines(document)
    yield '<main id="main" tabindex="-1">'
    names = _Names(section.name for section in document.sections)
    for section in document.sections:
        yield from _section_lines(section, names)
    yield "</main>"
    yield f"<footer><p>kafkashark {maker}. Times are UTC. This page loads nothing.</p></footer>"
    if document.page.data:
        yield f'<script type="application/json" id="data">{document.page.data}</script>'
    yield f"<script>{script}</script>"
    yield "</body>"
    yield "</html>"


def html_text(value: object) -> str:
    """Return a value as text that is safe in HTML and on terminals."""
    return escape(escaped(str(value)))


def json_for_script(value: Any) -> str:
    """Return JSON that HTML parsers cannot take for markup, or the end of a script."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # escapes non-ASCII characters
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def asset(path: Path) -> str:
    """Return the text of a script or style sheet of the package."""
    return path.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


class _Names:
    """Ids of a page, each once."""

    def __init__(self, taken: Iterator[str]) -> None:
        self._taken = {"main", "data", "filter", "filtered", *taken}

    def new(self, words: str) -> str:
        """Return an id made from words."""
        slug = re.sub("[^a-z0-9]+", "-", words.lower()).strip("-")[:40] or "part"
        name, number = slug, 1
        while name in self._taken:
            number += 1
            name = f"{slug}-{number}"
        self._taken.add(name)
        return name


def _header_lines(document: Document) -> Iterator[str]:
    yield "<header>"
    yield f"<h1{_class(document.mood)}>{html_text(document.headline)}</h1>"
    if document.subtitle:
        yield f'<p class="subtitle">{html_text(document.subtitle)}</p>'
    yield '<nav aria-label="Sections">'
    for section in document.sections:
        yield f'<a href="#{section.name}">{html_text(section.title)}</a>'
    yield "</nav>"
    yield '<p class="filter" hidden><label for="filter">Filter all tables</label>'
    yield '<input id="filter" type="search" autocomplete="off" spellcheck="false">'
    yield '<output id="filtered" for="filter"></output></p>'
    yield "</header>"


def _section_lines(section: Section, names: _Names) -> Iterator[str]:
    name, title = section.name, html_text(section.title)
    yield f'<section id="{name}" aria-labelledby="{name}-title">'
    yield f'<h2 id="{name}-title">{title}</h2>'
    for block in section.blocks:
        yield from _block_lines(block, section.title, names)
    yield "</section>"


def _block_lines(block: Block, above: str, names: _Names) -> Iterator[str]:
    match block:
        case Cards(cards):
            yield '<ul class="cards">'
            for card in cards:
                figure, words = html_text(card.figure), html_text(card.words)
                yield f"<li><b{_class(card.mood)}>{figure}</b> <span>{words}</span></li>"
            yield "</ul>"
        case Facts(rows):
            yield "<dl>"
            for name, value in rows:
                yield f"<dt>{html_text(name)}</dt><dd>{html_text(value)}</dd>"
            yield "</dl>"
        case Notes(lines, title, mood):
            for number, line in enumerate(lines):
                yield from () if number else _title_lines(title, above)
                yield f"<p{_class(mood or 'note')}>{html_text(line)}</p>"
        case Findings(items, title):
            yield from _title_lines(title, above)
            for finding in items:
                yield from _finding_lines(finding)
        case Table():
            yield from _table_lines(block, names) if block.rows else ()
        case Drawing(lines):
            yield from lines


def _title_lines(title: str, above: str) -> Iterator[str]:
    if title and title != above:
        yield f"<h3>{html_text(title)}</h3>"


def _finding_lines(finding: Finding) -> Iterator[str]:
    emphasis = html_text(finding.emphasis)
    shown = f"<b{_class(finding.mood)}>{emphasis}</b> " if emphasis else ""
    is_open = " open" if finding.is_open else ""
    heading = html_text(finding.heading)
    hint = f' <span class="note">{html_text(finding.hint)}</span>' if finding.hint else ""
    yield f'<details class="finding"{is_open}><summary>{shown}{heading}{hint}'
    if finding.begin_s is not None:
        times = f'data-begin="{finding.begin_s}" data-end="{finding.end_s}"'
        yield f'<button type="button" class="show" {times} hidden>show</button>'
    if finding.filter:
        text = html_text(finding.filter)
        yield f'<button type="button" data-filter="{text}" hidden>copy filter</button>'
    yield "</summary>"
    yield "<dl>"
    for name, value in finding.parts:
        yield f"<dt>{html_text(name)}</dt><dd>{_cell_html(value)}</dd>"
    yield "</dl></details>"


def _table_lines(table: Table, names: _Names) -> Iterator[str]:
    title = html_text(table.title)
    count = len(table.rows) + table.more
    is_open = " open" if table.is_open else ""
    yield f'<details class="table"{is_open} id="{table.name or names.new(table.title)}">'
    yield f'<summary><h3>{title}</h3> <span class="count">{count:,}</span></summary>'
    if table.note:
        yield f'<p class="note">{html_text(table.note)}</p>'
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{title}">'
    columns = zip(*(row.values for row in table.rows), strict=True)
    numeric = [_is_numeric(values) for values in columns]
    headings = "".join(
        f'<th scope="col"{_class("n" * is_number)}>{html_text(name.replace("_", " "))}</th>'
        for name, is_number in zip(table.columns, numeric, strict=True)
    )
    yield f"<table><thead><tr>{headings}</tr></thead><tbody>"
    yield from map(_row_html, table.rows)
    yield "</tbody></table></div>"
    if table.more > 0:
        yield f'<p class="note">{table.more:,} more are not shown.</p>'
    yield "</details>"


def _row_html(row: TableRow) -> str:
    times = (
        ""
        if row.begin_s is None or row.end_s is None
        else f' data-begin="{row.begin_s}" data-end="{row.end_s}"'
    )
    cells = []
    for value in row.values:
        if _is_number(value):
            kinds = "n" if value else "n zero"
            cells.append(f'<td class="{kinds}" data-number="{value}">{_cell_html(value)}</td>')
        else:
            cells.append(f"<td>{_cell_html(value)}</td>")
    return f"<tr{_class(row.mood)}{times}>{''.join(cells)}</tr>"


def _cell_html(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.3f}"
        case int():
            return f"{value:,}"
        case str():
            return _LONG_WORD.sub(_breakable, html_text(value))
        case _:
            return f"<code>{html_text(json_text(value))}</code>"


def _breakable(word: re.Match[str]) -> str:
    """Return a long word with places where a line of a printed page may end."""
    return _WORD_PART.sub(r"\g<0><wbr>", word[0])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_numeric(values: Sequence[Any]) -> bool:
    found = [value for value in values if value is not None]
    return bool(found) and all(map(_is_number, found))


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""
