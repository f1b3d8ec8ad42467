"""Options of commands that report findings: formats, and which items are looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dissector.cli.declared.reading_options import OutputOptions
from dissector.cli.declared.row_options import ColorOptions
from dissector.cli.parsing.declarations import Options, option
from dissector.cli.presentation.completion import complete_words
from dissector.errors import UsageError

FORMATS = ("text", "ndjson", "junit", "sarif", "html")

Declared = TypeVar("Declared", bound=type[Options])

SUFFIXES = {
    ".txt": "text",
    ".ndjson": "ndjson",
    ".xml": "junit",
    ".sarif": "sarif",
    ".html": "html",
}
"""Suffix of an output -> format."""


class CheckOptions(OutputOptions, ColorOptions):
    """What is looked for, and the form of the report; `looks_for` names the items."""

    form: str = option(
        "-T",
        "--format",
        default="",
        metavar="FORMAT",
        choices=FORMATS,
        help=f"{'|'.join(FORMATS)}; by default as the suffix of -o says: {', '.join(SUFFIXES)}.",
    )
    select: tuple[str, ...] = option(
        "--select",
        setting="own",
        default=(),
        metavar="ITEMS",
        help="Only these items: EXAMPLE. Repeatable.",
    )
    ignore: tuple[str, ...] = option(
        "--ignore",
        setting="own",
        default=(),
        metavar="ITEMS",
        help="Omit these items. Repeatable.",
    )
    list_items: bool = option("--list", default=False, help="Print the items.")
    explain: str | None = option(
        "--explain", default=None, metavar="ITEM", help="Print the documentation of one ITEM."
    )

    @property
    def chosen_form(self) -> str:
        """The format: as asked for, or as the suffix of the output says."""
        suffix = Path(self.output or "").suffix.lower()
        return self.form or SUFFIXES.get(suffix, "text")


def looks_for(
    item: str, example: str, known: Callable[[], Iterable[str]], *, items: str = ""
) -> Callable[[Declared], Declared]:
    """
    Return what names the items of a command in its options.

    Args:
        item: The word for one, as `rule`.
        example: Some of them.
        known: Returns the names of all.
        items: The word for several, if an s is not enough.
    """

    def name(options: Declared) -> Declared:
        for attribute in ("select", "ignore", "list_items", "explain"):
            each = CheckOptions.declared()[attribute]
            metavar = each.metavar.replace("ITEM", item.upper())
            several = f"{item}s" if attribute == "list_items" else items or f"{item}s"
            help = each.help.replace("items", several).replace("ITEM", item)
            shown = help.replace("EXAMPLE", example)
            complete = complete_words(known) if each.metavar else None
            setattr(
                options,
                attribute,
                each._replace(metavar=metavar, help=shown, complete=complete),
            )
        return options

    return name


def about_items(
    form: str, lines: Iterable[str], rows: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """
    Yield what --list and --explain print: lines of text, or a row for each item.

    Raises:
        UsageError: They have no such format.
    """
    from dissector.view.text.value_text import json_text

    if form not in ("text", "ndjson"):
        raise UsageError(f"--list and --explain print text or ndjson, not {form}")
    yield from lines if form == "text" else (json_text(dict(row)) for row in rows)
