"""
A picture of each view, held against what it showed before.

`pytest tests/browse/test_views.py --update-golden` writes them anew: look at the difference before
it is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from browse.detail import DetailPanes
from tests.browse.screens import DEMO, Screen, play, screen

VIEWS = Path(__file__).parent / "views"
SIZE = (110, 32)
JOIN_PACKET, PRODUCE_PACKET = 123, 69
"""Packets of a JoinGroup, and of a Produce with records."""

Way = Callable[[Screen], Awaitable[None]]


async def go_to(each: Screen, packet: int) -> None:
    """Choose the exchange of a packet, and wait for its fields."""
    each.app.go_to_packet(packet)
    await shown_details(each)


async def shown_details(each: Screen) -> None:
    await each.until(
        lambda: (
            each.app.rows.chosen is not None
            and each.app.details_number == each.app.session.exchange_number(each.app.rows.chosen)
        )
    )
    await each.settle()


def keys(*names: str, packet: int = JOIN_PACKET) -> Way:
    """Return a way that chooses an exchange and presses keys."""

    async def way(each: Screen) -> None:
        await go_to(each, packet)
        for name in names:
            await each.press(name)
        await each.settle()

    return way


def mode(key: str) -> Way:
    """Return a way to another kind of rows."""

    async def way(each: Screen) -> None:
        await each.press(key)
        await shown_details(each)

    return way


def panel(key: str, packet: int = JOIN_PACKET) -> Way:
    """Return a way that opens what lies over the list."""

    async def way(each: Screen) -> None:
        await go_to(each, packet)
        await each.press(key)
        await each.until(lambda: len(each.app.screen_stack) > 1)
        await each.pilot.pause()
        await each.settle()

    return way


def typed(text: str) -> Way:
    """Return a way that types a filter."""

    async def way(each: Screen) -> None:
        await go_to(each, JOIN_PACKET)
        await each.press("slash")
        await each.type(text)
        await each.settle()

    return way


async def followed(each: Screen) -> None:
    await panel("f")(each)
    await each.press("enter")
    await shown_details(each)


WAYS: dict[str, Way] = {
    "exchanges": keys(),
    "messages": mode("2"),
    "records": mode("3"),
    "connections": mode("4"),
    "events": mode("5"),
    "fields": keys("tab", "end", "asterisk", packet=PRODUCE_PACKET),
    "bytes": keys("tab", "tab", "pagedown"),
    "side-by-side": keys("vertical_line"),
    "filled": keys("tab", "backslash"),
    "filter-valid": typed("api == JoinGroup"),
    "filter-unfinished": typed("api == Jo"),
    "filter-invalid": typed("api == JoinGroup nonsense"),
    "follow": panel("f"),
    "followed": followed,
    "mode": panel("M"),
    "packet": panel("g"),
    "mark": panel("m"),
    "to-mark": panel("apostrophe"),
    "search": panel("ctrl+f"),
    "copy": panel("y"),
    "export": panel("e"),
    "help": panel("question_mark"),
    "problems": panel("p"),
    "statistics": panel("S"),
    "groups": panel("R"),
    "conversation": panel("v"),
    "columns": panel("c"),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_view(name: str, request: pytest.FixtureRequest) -> None:
    shown: list[str] = []

    async def scene() -> None:
        async with screen(DEMO, details=DetailPanes(), size=SIZE) as each:
            await WAYS[name](each)
            await each.pilot.pause()
            shown.extend(each.lines)

    play(scene)
    text = "".join(f"{line}\n" for line in shown)
    file = VIEWS / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_view_is_left_over() -> None:
    assert {each.stem for each in VIEWS.iterdir()} == WAYS.keys()
