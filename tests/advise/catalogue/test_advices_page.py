"""`docs/advise.md` agrees with the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from advise.advice_page import advices_page, main, with_advices_in
from advise.catalogue import ADVICES

PAGE = Path(__file__).parents[3] / "docs" / "advise.md"


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == with_advices_in(text), "regenerate it: python -m advise.advice_page --write"
    assert [name for name in ADVICES if f"\n### {name}\n" not in text] == []


def test_the_page_is_written_between_its_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text().replace("### acks-0", "### acks-9"))
    main(page, ["--write"])
    assert page.read_text() == PAGE.read_text()
    main(page, [])
    assert capsys.readouterr().out.rstrip("\n") == advices_page()
    with pytest.raises(SystemExit):
        with_advices_in("no marks")


def test_advices_are_complete() -> None:
    for each in ADVICES.values():
        assert all((each.title, each.what, each.cost, each.source, *each.settings.values()))
        assert all(limit.default >= 0 and limit.meaning for limit in each.limits.values())
