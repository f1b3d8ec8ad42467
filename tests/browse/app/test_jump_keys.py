"""Jumps to what belongs together, the menu of a row, and captures that need keys."""

from __future__ import annotations

import pytest

from browse.app.choice_screen import ChoiceScreen
from browse.app.jump_keys import AddedKeys
from browse.app.prompt_screen import PromptScreen
from browse.detail import DetailPanes
from browse.panels.help_panel import HelpPanel
from tests.browse.screens import play, screen
from tests.corpus import FOLDER

TLS, KEYS = (FOLDER / f"kafka4-java-tls13.{kind}" for kind in ("pcap.gz", "keylog"))


def test_jumps() -> None:
    async def scene() -> None:
        async with screen() as each:
            parts, rows = each.app.session.loading.parts, each.app.rows
            await each.press("E")
            assert rows.chosen is not None
            assert parts.value(rows.chosen, "errors") == ["COORDINATOR_NOT_AVAILABLE"]
            connection = parts.value(rows.chosen, "connection")
            before = rows.cursor
            await each.press("full_stop")
            assert rows.cursor != before
            assert parts.value(rows.chosen, "connection") == connection
            await each.press("comma")
            assert rows.cursor == before
            each.app.action_mode(1)
            each.app.go_to_packet(121)
            await each.press("r")
            shown = each.app.session.shown.parts
            assert rows.chosen is not None
            assert shown.cells(rows.chosen, ("packet", "kind")) == [122, "response"]
            assert "MEMBER_ID_REQUIRED" in each.lines[3 + rows.cursor - round(rows.scroll_y)]
            await each.press("r")
            assert shown.value(rows.chosen, "packet") == 121
            await each.filter("api == Heartbeat and error == NONE")
            await each.press("home", "E")
            assert "no row with an error" in each.app.status.notice

    play(scene)


def test_a_right_click_offers_what_can_be_done_with_a_row() -> None:
    async def scene() -> None:
        async with screen() as each:
            x = each.lines[2].index("api")
            await each.click("#rows", offset=(x, 5), button=3)
            await each.until(lambda: isinstance(each.app.screen, ChoiceScreen))
            assert each.app.rows.cursor == 4
            assert 'Filter: api == "CreateTopics"' in each.text
            await each.press("enter", "enter")
            assert each.app.session.text == 'api == "CreateTopics"'
            assert len(each.app.session.shown) == 1

    play(scene)


@pytest.mark.long
def test_the_chosen_field_has_its_name_and_bytes_in_the_status_line() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes(), size=(170, 40)) as each:
            each.app.go_to_packet(121)
            await each.until(lambda: each.app.details_number is not None)
            await each.press("tab", "down", "down", "down")
            assert "request.group_id  9 bytes at" in each.lines[-2]
            each.app.rows.focus()
            await each.until(lambda: each.app.focused is each.app.rows)
            await each.settle()
            assert "request.group_id" not in each.lines[-2]

    play(scene)


@pytest.mark.long
def test_without_keys_the_connections_stay_on_the_screen() -> None:
    async def scene() -> None:
        async with screen(TLS) as each:
            await each.until(lambda: each.app.session.mode.name == "connections")
            await each.settle()
            assert "4 TLS connections, none readable: K adds a key log" in each.lines[0]
            assert len(each.app.session.shown) == 4
            assert "TLSv1.3" in each.text or "1.3" in each.text
            await each.press("K")
            await each.until(lambda: isinstance(each.app.screen, PromptScreen))
            await each.type(str(KEYS))
            await each.pilot.press("enter")
            await each.until(lambda: not each.app.is_running)
            assert each.app.return_value == AddedKeys(str(KEYS), "")

    play(scene)


def test_the_help_has_two_columns_and_a_search() -> None:
    async def scene() -> None:
        async with screen(size=(130, 40)) as each:
            await each.press("question_mark")
            await each.until(lambda: isinstance(each.app.screen, HelpPanel))
            first = next(line for line in each.lines if "Go to packet" in line)
            assert len(first.replace("│", "").split("  ")) > 3, "keys in two columns"
            await each.type("key log")
            await each.pilot.pause()
            assert "Add a key log" in each.text
            assert "Go to packet" not in each.text

    play(scene)
