"""
Updates the lists in docs/fields.md: columns of commands, names in filters, Wireshark's names.

python -m tools.fields_page [--write]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

from dissector.cli.presentation.listing import CATALOGUES, TYPES
from dissector.filter.functions import FUNCTIONS
from dissector.filter.names import field_list, wireshark_list
from dissector.view.text.generated_part import with_generated

PAGE = Path(__file__).parents[1] / "docs" / "fields.md"
BEGIN, END = "<!-- lists, by tools.fields_page -->\n", "<!-- end of lists -->"


def lists() -> str:
    """Return the lists in Markdown."""
    parts: list[str] = []
    for command, catalogue in CATALOGUES.items():
        rows = ((f"`{each.name}`", TYPES[each.type], each.meaning) for each in catalogue)
        parts.append(f"## Columns of `{command}`\n\n{_table('column | type | meaning', rows)}")
    known = {each.name for catalogue in CATALOGUES.values() for each in catalogue}
    own = takewhile(lambda each: not each[0].startswith("kafka."), field_list(records=True))
    names = ((f"`{name}`", kind, meaning) for name, kind, meaning in own if name not in known)
    parts.append(f"## Further names in filters\n\n{_table('name | kind | meaning', names)}")
    functions = ((f"`{name}(NAME)`", meaning) for name, meaning in FUNCTIONS.items())
    parts.append(f"## Functions\n\n{_table('function | value', functions)}")
    wireshark = (
        (f"`{name}`", kind or "none", _code(meaning) if kind else meaning)
        for name, kind, meaning in sorted(wireshark_list())
    )
    parts.append(f"## Names of Wireshark\n\n{_table('name | kind | here', wireshark)}")
    return "\n".join(parts)


def _code(names: str) -> str:
    if names.endswith((" of a record", " of a record batch")):
        return names
    return " ".join(f"`{name}`" for name in names.split())


def _table(heading: str, rows: Iterable[tuple[str, ...]]) -> str:
    def lines() -> Iterator[str]:
        yield f"| {heading} |"
        yield "|" + "---|" * (heading.count("|") + 1)
        yield from (f"| {' | '.join(row)} |" for row in rows)

    return "".join(f"{line}\n" for line in lines())


def written_into(text: str) -> str:
    """Return a text with the current lists between its marks."""
    return with_generated(text, (BEGIN, END), f"\n{lists()}\n")


def main(arguments: list[str]) -> None:
    if arguments == ["--write"]:
        PAGE.write_text(written_into(PAGE.read_text()))
    elif arguments:
        raise SystemExit("python -m tools.fields_page [--write]")
    else:
        print(lists(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
