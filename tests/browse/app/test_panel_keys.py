"""Keys that open panels over the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from browse.detail import DetailPanes
from browse.panels.column_chooser import ColumnChooser
from browse.panels.conversation_panel import ConversationPanel
from browse.panels.expert_panel import ExpertPanel
from browse.panels.export_dialog import ExportDialog
from browse.panels.help_panel import HelpPanel
from browse.panels.table_panel import TablePanel
from tests.browse.screens import DEMO, Screen, play, screen


async def opens(each: Screen, key: str, panel: type) -> None:
    await each.press(key)
    await each.until(lambda: isinstance(each.app.screen, panel))
    await each.until(lambda: each.app.focused is not None)
    await each.settle()


def test_panels_open_and_close() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes(), size=(120, 60)) as each:
            for key, panel, word in (
                ("question_mark", HelpPanel, "Go to packet"),
                ("exclamation_mark", ExpertPanel, "OffsetCommit failed"),
                ("S", TablePanel, "APIs (16)"),
                ("R", TablePanel, "billing"),
                ("v", ConversationPanel, "ApiVersions"),
                ("c", ColumnChooser, "response_time_ns"),
                ("e", ExportDialog, "demo-exchanges.pcapng"),
            ):
                await opens(each, key, panel)
                await each.until(lambda word=word: word in each.text)  # type: ignore[misc]
                await each.press("escape")
                assert len(each.app.screen_stack) == 1

    play(scene)


def test_every_key_is_in_the_help() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes()) as each:
            described = {each.description for each in each.app.BINDINGS}  # type: ignore[union-attr]
            assert "" not in described

    play(scene)


def test_a_problem_leads_to_its_exchange(tmp_path: Path) -> None:
    data = bytearray(DEMO.read_bytes())
    at = data.index(b"demo.orders", 20_000)
    data[at - 3 : at] = b"\x7f\xff\xff"
    file = tmp_path / "damaged.pcap"
    file.write_bytes(data)

    async def scene() -> None:
        async with screen(file) as each:
            await each.press("2")
            await opens(each, "exclamation_mark", ExpertPanel)
            await each.until(lambda: "Invalid length of a string" in each.text)
            await each.press("down", "down", "enter")
            await each.until(lambda: len(each.app.screen_stack) == 1)
            row = each.app.rows.chosen
            assert each.app.session.mode.name == "exchanges"
            assert each.app.session.shown.parts.value(row, "problems")

    play(scene)


@pytest.mark.long
def test_a_row_of_a_table_becomes_the_filter() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes()) as each:
            await each.filter("client_id == billing-1")
            await opens(each, "S", TablePanel)
            await each.press("5", "enter")
            assert each.app.session.text == (
                "(client_id == billing-1) and "
                "(error == COORDINATOR_NOT_AVAILABLE and api == FindCoordinator)"
            )
            assert len(each.app.session.shown) == 1
            await each.filter("")
            await each.press("4")
            await opens(each, "R", TablePanel)
            await each.press("2", "down", "enter")
            assert each.app.session.mode.name == "exchanges"
            assert 0 < len(each.app.session.shown) < 20

    play(scene)
