"""
The content of a report: headline, facts, tables, findings, notes and drawings, in sections.

A report says what it has to say once, in these types; `text_form` and `html_form` write it. Texts
from captures are escaped there, and masked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NewType, TypeAlias

Mood: TypeAlias = Literal["", "good", "bad", "warning", "note", "unsure", "bad unsure"]
"""How a text is coloured on a page; the words say the same."""

Markup = NewType("Markup", str)
"""HTML of our own, in which all text from captures is escaped."""


@dataclass(frozen=True, slots=True)
class Facts:
    """
    Names and values.

    Attributes:
        rows: Name and value of each.
    """

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Card:
    """
    A figure that a reader should see first.

    Attributes:
        figure: The number, with its unit.
        words: What it counts.
        mood: Of the figure.
    """

    figure: str
    words: str
    mood: Mood = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """
    Figures side by side.

    Attributes:
        cards: The figures.
    """

    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Notes:
    """
    Sentences.

    Attributes:
        lines: The sentences.
        title: Heading; may be empty.
        mood: Of all of them.
    """

    lines: Iterable[str]
    title: str = ""
    mood: Mood = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Something found, with its details.

    Attributes:
        heading: What it is.
        parts: Names and values of details, in order; a value without a name goes on from the one
            before.
        emphasis: Begin of the heading in the colour of `mood`.
        mood: How bad it is.
        is_open: Whether a page shows the details unasked.
        hint: More in a page's line of the heading; the details say it, too.
        filter: Display filter that a page offers to copy; empty without one.
        begin_s: Begin in seconds since the begin of the plots, to which a page zooms.
        end_s: End in the same unit.
    """

    heading: str
    parts: Sequence[tuple[str, Any]]
    emphasis: str = ""
    mood: Mood = ""
    is_open: bool = False
    hint: str = ""
    filter: str = ""
    begin_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """
    Findings of one kind.

    Attributes:
        items: The findings; read once.
        title: Heading; may be empty.
    """

    items: Iterable[Finding]
    title: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """
    A row of a table.

    Attributes:
        values: Numbers, texts, lists and mappings; None is an empty cell.
        mood: Of the row.
        begin_s: Begin in seconds since the begin of the plots; None for rows without a time.
        end_s: End in the same unit.
    """

    values: Sequence[Any]
    mood: Mood = ""
    begin_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table.

    Attributes:
        title: Caption.
        columns: Their names.
        rows: The rows.
        more: Number of rows that are left out.
        note: A sentence for the reader; may be empty.
        is_open: Whether a page shows the rows unasked.
        name: Id in a page; by default made from the title.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[TableRow]
    more: int = 0
    note: str = ""
    is_open: bool = True
    name: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """
    Plots and lanes, which only a page has.

    Attributes:
        lines: Lines of HTML.
    """

    lines: Iterable[Markup]


Block: TypeAlias = Cards | Facts | Notes | Findings | Table | Drawing


@dataclass(frozen=True, slots=True)
class Section:
    """
    A part of a report that can be linked to.

    Attributes:
        name: Id in a page.
        title: Heading in a page; the text has only the titles of blocks.
        blocks: What it says, in order; read once.
    """

    name: str
    title: str
    blocks: Iterable[Block]


@dataclass(frozen=True, slots=True)
class PageParts:
    """
    What a page has besides the usual.

    Attributes:
        styles: More style sheets.
        scripts: More scripts, before the one of the tables.
        data: JSON for the scripts; empty for none.
    """

    styles: Sequence[str] = ()
    scripts: Sequence[str] = ()
    data: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """
    A report.

    Attributes:
        title: What it is on: a short name.
        headline: What it says, in one line.
        sections: Its parts.
        mood: Of the headline.
        page: What its page has besides the usual.
        subtitle: Of what and when it is, in one line below the headline; may be empty.
    """

    title: str
    headline: str
    sections: Sequence[Section]
    mood: Mood = ""
    page: PageParts = field(default=PageParts())
    subtitle: str = ""


def table_of(title: str, rows: Sequence[Mapping[str, Any]]) -> Iterable[Table]:
    """Yield the table of rows that all have the columns of the first one; none without rows."""
    if rows:
        columns = list(rows[0])
        yield Table(title, columns, [TableRow([row[name] for name in columns]) for row in rows])
