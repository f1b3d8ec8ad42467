"""Pages generated from commands and fields."""

from __future__ import annotations

import re

import pytest

from dissector.cli.presentation.listing import CATALOGUES
from tools import fields_page, man_page


def test_the_page_of_fields_is_current() -> None:
    text = fields_page.PAGE.read_text()
    current = fields_page.written_into(text)
    assert text == current, "regenerate it: python -m tools.fields_page --write"
    with pytest.raises(SystemExit):
        fields_page.written_into("no marks")


def test_the_page_lists_every_column() -> None:
    text = fields_page.lists()
    for command, catalogue in CATALOGUES.items():
        section = text.split(f"## Columns of `{command}`")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == [
            each.name for each in catalogue
        ]


def test_the_manual_page_is_current() -> None:
    current = man_page.page()
    assert man_page.PAGE.read_text() == current, "regenerate it: python -m tools.man_page --write"


def test_the_manual_page_has_every_command_and_option() -> None:
    text = man_page.page()
    for command in ("dissect", "pairs", "records", "streams", "stats", "schema", "replay"):
        section = text.split(f"\n.SS {command}\n")[1].split("\n.SS ")[0]
        assert "\nExamples:\n" in section
    assert r".B \-Y, \-\-filter FILTER" in text
    assert not re.search(r"^\.(?!TH|SH|SS|TP|PP|BR|B|br|nf|fi)", text, re.MULTILINE)
