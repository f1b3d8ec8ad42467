"""Each key of the screen and of its list has an effect; a new key needs its line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.widgets import Input

from browse.app.browse_app import BrowseApp
from browse.app.choice_screen import ChoiceScreen
from browse.app.prompt_screen import LetterScreen, PromptScreen
from browse.detail import DetailPanes
from browse.detail.byte_view import ByteView
from browse.detail.field_tree import FieldTree
from browse.listing.row_list import RowList
from browse.listing.traffic_line import TrafficLine
from browse.panels.column_chooser import ColumnChooser
from browse.panels.conversation_panel import ConversationPanel
from browse.panels.copy_chooser import CopyChooser
from browse.panels.expert_panel import ExpertPanel
from browse.panels.export_dialog import ExportDialog
from browse.panels.help_panel import HelpPanel
from browse.panels.table_panel import TablePanel
from tests.browse.screens import Screen, play, screen

Effect = Callable[[Screen], bool]
START, COLUMN = 24, 3
"""Row and column that are chosen before each key."""


def opens(panel: type) -> Effect:
    return lambda each: isinstance(each.app.screen, panel)


def mode(name: str) -> Effect:
    return lambda each: each.app.session.mode.name == name


def row(test: Callable[[int], bool]) -> Effect:
    return lambda each: test(each.app.rows.cursor)


def column(number: int) -> Effect:
    return lambda each: each.app.rows.column == number


def moves_column(to: int) -> Effect:
    return lambda each: each.app.rows.columns[to] == "api" and each.app.rows.column == to


def focuses(widget: type) -> Effect:
    return lambda each: isinstance(each.app.focused, widget)


def is_sorted(each: Screen) -> bool:
    sort = each.app.session.shown.sort
    return sort is not None and sort.name == "api"


def grows(by: int) -> Effect:
    """Return an effect: the list has more or fewer lines than before."""
    return lambda each: (each.app.rows.size.height - HEIGHT) * by > 0


HEIGHT = 14
"""Of the list on the screen of these tests."""

EFFECTS: dict[str, tuple[Effect, tuple[str, ...]]] = {
    "question_mark": (opens(HelpPanel), ("escape",)),
    "slash": (focuses(Input), ("escape",)),
    "2": (mode("messages"), ("1",)),
    "3": (mode("records"), ("1",)),
    "4": (mode("connections"), ("1",)),
    "5": (mode("events"), ("1",)),
    "1": (mode("exchanges"), ()),
    "M": (opens(ChoiceScreen), ("escape",)),
    "s": (is_sorted, ("s", "s")),
    "f": (opens(ChoiceScreen), ("escape",)),
    "g": (opens(PromptScreen), ("escape",)),
    "m": (opens(LetterScreen), ("a",)),
    "apostrophe": (opens(LetterScreen), ("escape",)),
    "ctrl+f": (opens(PromptScreen), ("escape",)),
    "n": (lambda each: each.app.status.notice != "", ()),  # the message about a missing search
    "N": (lambda each: each.app.status.notice != "", ()),
    "y": (opens(CopyChooser), ("escape",)),
    "e": (opens(ExportDialog), ("escape",)),
    "number_sign": (opens(PromptScreen), ("escape",)),
    "t": (lambda each: each.app.times.style == "d", ()),
    "exclamation_mark": (opens(ExpertPanel), ("escape",)),
    "S": (opens(TablePanel), ("escape",)),
    "R": (opens(TablePanel), ("escape",)),
    "E": (row(lambda at: at > START), ()),
    "full_stop": (row(lambda at: at > START), ()),
    "comma": (row(lambda at: at < START), ()),
    "r": (lambda each: each.app.status.notice != "", ()),  # rows of exchanges have no counterpart
    "K": (opens(PromptScreen), ("escape",)),
    "w": (focuses(TrafficLine), ("escape",)),
    "v": (opens(ConversationPanel), ("escape",)),
    "c": (opens(ColumnChooser), ("escape",)),
    "T": (opens(ChoiceScreen), ("escape",)),
    "less_than_sign": (moves_column(COLUMN - 1), ("greater_than_sign",)),
    "greater_than_sign": (moves_column(COLUMN + 1), ("less_than_sign",)),
    "tab": (focuses(FieldTree), ()),
    "shift+tab": (focuses(ByteView), ()),
    "vertical_line": (
        lambda each: each.app.query_one(ByteView).region.x > 0,
        ("vertical_line", "vertical_line"),
    ),
    "plus": (grows(1), ("minus",)),
    "minus": (grows(-1), ("plus",)),
    "backslash": (lambda each: not each.app.query_one(DetailPanes).display, ("backslash",)),
    "escape": (lambda each: each.app.session.text == "", ()),
    "up": (row(lambda at: at == START - 1), ()),
    "k": (row(lambda at: at == START - 1), ()),
    "down": (row(lambda at: at == START + 1), ()),
    "j": (row(lambda at: at == START + 1), ()),
    "pageup": (row(lambda at: 0 < at < START - 5), ()),
    "pagedown": (row(lambda at: START + 5 < at < START + HEIGHT), ()),
    "space": (row(lambda at: START + 5 < at < START + HEIGHT), ()),
    "home": (row(lambda at: at == 0), ()),
    "end": (row(lambda at: at == 280), ()),
    "G": (row(lambda at: at == 280), ()),
    "left": (column(COLUMN - 1), ()),
    "h": (column(COLUMN - 1), ()),
    "right": (column(COLUMN + 1), ()),
    "l": (column(COLUMN + 1), ()),
    # The last one: the column is hidden.
    "x": (lambda each: "api" not in each.app.rows.columns, ()),
}
"""What each key does, and the keys that undo it."""

ENDS = ("q", "ctrl+q")


def keys_of(owner: type[DOMNode]) -> Iterable[str]:
    for each in owner.BINDINGS:
        assert isinstance(each, Binding)
        yield from each.key.split(",")


def test_each_key_has_an_expected_effect() -> None:
    declared = {key for owner in (BrowseApp, RowList) for key in keys_of(owner)}
    assert declared == {*EFFECTS, *ENDS}


@pytest.mark.long
def test_each_key() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes(), size=(120, 32)) as each:
            assert each.app.rows.size.height == HEIGHT
            for key, (effect, undo) in EFFECTS.items():
                each.app.rows.focus()
                each.app.rows.choose(START)
                each.app.rows.column = COLUMN
                await each.settle()
                assert each.app.screen_stack[1:] == [], key
                if key == "escape":
                    await each.filter("api == Fetch or api == JoinGroup")
                    assert each.app.session.text
                elif key != "1":
                    assert not effect(each), f"{key} changes nothing"
                await each.pilot.press(key)
                await each.until(lambda effect=effect: effect(each))  # type: ignore[misc]
                for name in undo:
                    await each.pilot.pause()
                    await each.press(name)
                each.app.status.notice = ""

    play(scene)


@pytest.mark.parametrize("key", ENDS)
def test_keys_that_quit(key: str) -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.pilot.press(key)
            await each.until(lambda: not each.app.is_running)

    play(scene)


@pytest.mark.long
def test_a_theme_is_chosen() -> None:
    async def scene() -> None:
        async with screen() as each:
            names, before = sorted(each.app.available_themes), each.app.theme
            after = names[names.index(before) + 1]
            await each.pilot.press("T")
            await each.until(opens_choice(each))
            await each.pilot.press("down")
            await each.until(lambda: each.app.theme == after)
            await each.press("escape")
            assert each.app.theme == before
            await each.pilot.press("T")
            await each.until(opens_choice(each))
            await each.press("down", "enter")
            assert each.app.theme == after

    play(scene)


def opens_choice(each: Screen) -> Callable[[], bool]:
    return lambda: isinstance(each.app.screen, ChoiceScreen) and each.app.focused is not None


def test_colours_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with errors are red; with NO_COLOR nothing has a colour."""
    shown: list[set[tuple[int, int, int]]] = []

    async def scene() -> None:
        async with screen() as each:
            each.app.rows.choose(0)
            await each.pilot.pause()
            found = set()
            for strip in each.app.screen._compositor.render_strips():
                if "COORDINATOR_NOT_AVAILABLE" in strip.text:
                    found |= {
                        segment.style.color.triplet
                        for segment in strip
                        if segment.style and segment.style.color and segment.style.color.triplet
                    }
            shown.append({tuple(each) for each in found})

    play(scene)
    monkeypatch.setenv("NO_COLOR", "1")
    play(scene)
    coloured, plain = shown
    assert any(red > green + 40 and red > blue + 40 for red, green, blue in coloured)
    assert all(red == green == blue for red, green, blue in plain)
