"""
Snapshots of each view, compared with stored ones.

`pytest tests/browse/test_views.py --update-golden` rewrites them: review the
difference before the commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from browse.detail import DetailPanes
from tests.browse.screens import DEMO, Screen, play, screen
from tests.corpus import fast_and_long

VIEWS = Path(__file__).parent / "views"
SIZE = (110, 32)
JOIN_PACKET, PRODUCE_PACKET = 123, 69
"""Packets of a JoinGroup, and of a Produce with records."""

Steps = Callable[[Screen], Awaitable[None]]


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


def keys(*names: str, packet: int = JOIN_PACKET) -> Steps:
    """Return steps that select an exchange and press keys."""

    async def steps(each: Screen) -> None:
        await go_to(each, packet)
        for name in names:
            await each.press(name)
        await each.settle()

    return steps


def mode(key: str) -> Steps:
    """Return steps to another kind of rows."""

    async def steps(each: Screen) -> None:
        await each.press(key)
        await shown_details(each)

    return steps


def panel(key: str, packet: int = JOIN_PACKET) -> Steps:
    """Return steps that open a panel over the list."""

    async def steps(each: Screen) -> None:
        await go_to(each, packet)
        await each.press(key)
        await each.until(lambda: len(each.app.screen_stack) > 1)
        await each.pilot.pause()
        await each.settle()

    return steps


def typed(text: str) -> Steps:
    """Return steps that type a filter."""

    async def steps(each: Screen) -> None:
        await go_to(each, JOIN_PACKET)
        await each.press("slash")
        each.app.bar.edit(text[:-1])
        await each.type(text[-1])
        await each.settle()

    return steps


async def followed(each: Screen) -> None:
    await panel("f")(each)
    await each.press("enter")
    await shown_details(each)


STEPS: dict[str, Steps] = {
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
    "stands-out": panel("exclamation_mark"),
    "statistics": panel("S"),
    "groups": panel("R"),
    "conversation": panel("v"),
    "columns": panel("c"),
}


@pytest.fixture(autouse=True)
def names_without_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start in an empty folder: a view names its capture as the command did."""
    monkeypatch.chdir(tmp_path)


def damaged() -> Path:
    """Return a copy of the demo that ends within a packet."""
    data = DEMO.read_bytes()
    file = Path("damaged.pcap")
    file.write_bytes(data[:60_000])
    return file


OTHERS: dict[str, tuple[Callable[[], Path], tuple[int, int], Steps]] = {
    "damaged": (damaged, SIZE, panel("exclamation_mark")),
    "too-small": (lambda: DEMO, (39, 9), keys()),
}
"""Views of other captures, or of another size."""


FAST = ("exchanges", "records", "fields", "filter-invalid", "export", "statistics", *OTHERS)
"""Views of `make test`; tests of the keys open the other panels."""


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", fast_and_long(FAST, sorted(STEPS.keys() - set(FAST))))
def test_a_view(name: str, request: pytest.FixtureRequest) -> None:
    capture, size, steps = OTHERS[name] if name in OTHERS else (lambda: DEMO, SIZE, STEPS[name])
    shown: list[str] = []

    async def scene() -> None:
        async with screen(capture(), details=DetailPanes(), size=size, is_drawn=True) as each:
            await steps(each)
            await each.pilot.pause()
            shown.extend(each.lines)

    play(scene)
    text = "".join(f"{line}\n" for line in shown)
    file = VIEWS / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_stored_view_is_obsolete() -> None:
    assert {each.stem for each in VIEWS.iterdir()} == STEPS.keys() | OTHERS.keys()
