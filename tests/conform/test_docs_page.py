"""`docs/conformance.md` agrees with the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform.docs_page import FAMILIES, main, rules_page, with_rules_in
from conform.rules import REGISTRY

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == with_rules_in(text), "regenerate it: python -m conform.docs_page --write"


def test_the_page_has_every_rule() -> None:
    text = rules_page()
    assert [name for name in REGISTRY if f"| {name} " not in text] == []
    assert {name[0] for name in REGISTRY} <= FAMILIES.keys()


def test_the_page_is_written_between_its_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text().replace("| F03 ", "| F00 "))
    main(page, ["--write"])
    assert page.read_text() == PAGE.read_text()
    main(page, [])
    assert capsys.readouterr().out.rstrip("\n") == rules_page()
    with pytest.raises(SystemExit):
        with_rules_in("no marks")
