"""A report as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dissector.view.document.content import (
    Block,
    Cards,
    Document,
    Drawing,
    Facts,
    Finding,
    Findings,
    Mood,
    Notes,
    Table,
)
from dissector.view.tables.row_formats import table_lines
from dissector.view.text.colors import RED, YELLOW, colored
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text

NAME_WIDTH = 9
_COLORS: Mapping[Mood, str] = {"bad": RED, "warning": YELLOW}


def text_lines(
    document: Document,
    terminal_width: int | None = None,
    *,
    ends_with_headline: bool = False,
    is_coloured: bool = False,
) -> Iterator[str]:
    """
    Yield the lines of a report.

    Args:
        document: The report.
        terminal_width: Maximum width of the lines of tables; None without a terminal.
        ends_with_headline: Whether the headline is the last line instead of the first.
        is_coloured: Whether what findings begin with has the colour of their mood.
    """
    if not ends_with_headline:
        yield escaped(document.headline)
        yield from [escaped(document.subtitle)] if document.subtitle else ()
    is_first = ends_with_headline
    for section in document.sections:
        for block in section.blocks:
            lines = _block_lines(block, terminal_width, is_coloured=is_coloured)
            for line in lines:
                if not is_first:
                    yield ""
                yield line
                yield from lines
                is_first = False
    if ends_with_headline:
        if not is_first:
            yield ""
        yield escaped(document.headline)


def _block_lines(block: Block, terminal_width: int | None, *, is_coloured: bool) -> Iterator[str]:
    match block:
        case Cards(cards):
            yield from (f"{escaped(card.figure)} {escaped(card.words)}" for card in cards)
        case Facts(rows):
            width = max([NAME_WIDTH, *(len(name) for name, _ in rows)])
            yield from (f"{name:<{width}} {escaped(value)}" for name, value in rows)
        case Notes():
            yield from _note_lines(block)
        case Findings():
            yield from _finding_lines(block, is_coloured=is_coloured)
        case Table():
            yield from _table_lines(block, terminal_width)
        case Drawing():
            pass


def _note_lines(notes: Notes) -> Iterator[str]:
    indent = "  " if notes.title else ""
    title = notes.title
    for line in notes.lines:
        if title:
            yield title
            title = ""
        yield f"{indent}{escaped(line)}"


def _finding_lines(findings: Findings, *, is_coloured: bool) -> Iterator[str]:
    """Yield findings below their title, or each apart from the others."""
    title = findings.title
    indent = "  " if title else ""
    is_first = True
    for finding in findings.items:
        if title and is_first:
            yield title
        elif not title and not is_first:
            yield ""
        is_first = False
        yield f"{indent}{_heading(finding, is_coloured=is_coloured)}"
        for name, value in finding.parts:
            shown = escaped(value) if isinstance(value, str) else json_text(value)
            yield f"{indent}  {name:<{NAME_WIDTH}} {shown}"


def _heading(finding: Finding, *, is_coloured: bool) -> str:
    emphasis = escaped(finding.emphasis)
    if is_coloured:
        emphasis = colored(emphasis, 0, len(emphasis), _COLORS.get(finding.mood, ""))
    return " ".join(filter(None, (emphasis, escaped(finding.heading))))


def _table_lines(table: Table, terminal_width: int | None) -> Iterator[str]:
    if not table.rows:
        return
    yield table.title
    rows = [dict(zip(table.columns, row.values, strict=True)) for row in table.rows]
    yield from table_lines(rows, table.columns, terminal_width=terminal_width)
    if table.more:
        yield f"{table.more:,} more are not shown"
    if table.note:
        yield table.note
