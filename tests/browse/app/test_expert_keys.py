"""What stands out, on the screen: places, filters, explanations."""

from __future__ import annotations

import pytest

from browse.app.browse_app import BrowseApp
from browse.panels.expert_panel import ExpertPanel
from browse.panels.report_panel import ReportPanel
from tests.browse.screens import Screen, play, screen


async def expert(each: Screen, *keys: str) -> None:
    """Open the list, and press keys in it."""
    await each.press("exclamation_mark")
    await each.until(lambda: isinstance(each.app.screen, ExpertPanel))
    await each.settle()
    for key in keys:
        await each.press(key)


def packet(app: BrowseApp) -> object:
    assert app.rows.chosen is not None
    return app.session.shown.parts.value(app.rows.chosen, "request_packet")


@pytest.mark.long
def test_enter_goes_from_place_to_place() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("2")
            for expected in (594, 604, 619, 594):
                await expert(each, "enter")
                await each.until(lambda: len(each.app.screen_stack) == 1)
                assert each.app.session.mode.name == "exchanges"
                assert packet(each.app) == expected
            assert "place 1 of 3" in each.app.status.notice
            await expert(each, "down", "enter")
            assert packet(each.app) == 625
            await expert(each, "enter")
            assert packet(each.app) == 626

    play(scene)


def test_filter_explanation_and_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(BrowseApp, "copy_to_clipboard", lambda self, text: copied.append(text))

    async def scene() -> None:
        async with screen() as each:
            await expert(each, "equals_sign")
            await each.settle()
            assert each.app.session.text == (
                "api == OffsetCommit and errors == UNKNOWN_TOPIC_OR_PARTITION"
            )
            assert len(each.app.session.shown) == 3
            await expert(each, "y")
            assert copied[0].startswith("3 OffsetCommit failed")
            await expert(each, "E")
            await each.until(lambda: isinstance(each.app.screen, ReportPanel))
            await each.until(lambda: "Errors in responses" in each.text)

    play(scene)


def test_a_screen_may_begin_with_what_stands_out() -> None:
    async def scene() -> None:
        async with screen() as each:
            each.app.begins_with_news = True
            await each.until(lambda: isinstance(each.app.screen, ExpertPanel))
            assert not each.app.begins_with_news

    play(scene)
