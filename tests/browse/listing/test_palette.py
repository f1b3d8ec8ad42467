"""Colours of both default themes, by the contrast that W3C asks for."""

from __future__ import annotations

import pytest
from textual.color import Color

from browse.listing.palette import LEAST_CONTRAST, contrast
from browse.listing.row_colors import STYLES
from browse.listing.row_list import RowList
from tests.browse.screens import play, screen


@pytest.mark.thinned(2)
@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
def test_rows_are_readable_and_their_kinds_differ(theme: str) -> None:
    async def scene() -> None:
        async with screen() as each:
            each.app.theme = theme
            await each.pilot.pause()
            rows = each.app.rows
            styles = {name: rows.get_component_styles(f"row-list--{name}") for name in STYLES}
            for name, style in styles.items():
                found = contrast(style.color, rows.background_colors[1])
                assert found >= LEAST_CONTRAST, f"{name}: {found:.1f}"
            news = [styles[name].color for name in ("error", "damaged", "incomplete", "groups")]
            assert len({color.hex for color in news}) == 4
            variables = each.app.get_css_variables()
            offset = Color.parse(variables["byte-offset"])
            assert contrast(offset, Color.parse(variables["surface"])) >= LEAST_CONTRAST
            key = Color.parse(variables["footer-key-foreground"])
            assert contrast(key, Color.parse(variables["panel"])) >= LEAST_CONTRAST

    play(scene)


def test_news_have_signs_beside_their_colours() -> None:
    async def scene() -> None:
        async with screen() as each:
            each.app.go_to_packet(121)
            await each.settle()
            line = next(line for line in each.lines if " 121 " in line[:10])
            assert line.startswith(" !"), "an error"
            assert "group billing new member → MEMBER_ID_REQUIRED" in line
            others = [line for line in each.lines[3:11] if "→ offset" in line]
            assert not any(line.startswith(" !") for line in others)
            assert isinstance(each.app.rows, RowList)

    play(scene)
