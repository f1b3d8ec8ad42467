"""
Updates the table of APIs and versions in docs/apis.md from the declarations.

    python -m tools.api_table            prints the table
    python -m tools.api_table --write    writes it to docs/apis.md, between the marks
"""

from __future__ import annotations

import sys
from pathlib import Path

from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis
from dissector.view.text.generated_part import with_generated

PAGE = Path(__file__).parents[1] / "docs" / "apis.md"
BEGIN, END = "<!-- apis -->\n", "<!-- /apis -->"


def table() -> str:
    """Return the table in Markdown."""
    rows = [
        "| key | API | versions | flexible from |",
        "|---:|---|---|---|",
        *(
            f"| {each.key} | {each.name} | {each.request.versions_text} | {_flexible_from(each)} |"
            for each in all_apis()
        ),
    ]
    return "".join(f"{row}\n" for row in rows)


def _flexible_from(each: Api) -> str:
    flexible = [v for v in each.request.versions if v in each.request.flexible]
    return str(flexible[0]) if flexible else "never"


def written_into(text: str) -> str:
    """Return a text with the current table between its marks."""
    return with_generated(text, (BEGIN, END), table())


def main(arguments: list[str]) -> None:
    if arguments == ["--write"]:
        PAGE.write_text(written_into(PAGE.read_text()))
    elif arguments:
        raise SystemExit("python -m tools.api_table [--write]")
    else:
        print(table(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
