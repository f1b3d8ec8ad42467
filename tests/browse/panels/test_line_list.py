from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rich.text import Text
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from browse.panels.line_list import LineList
from tests.browse.panels.panel_host import lines


class Host(App[None]):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.made: set[int] = set()
        self.rows: list[int] = []
        self.chosen: list[int] = []
        self.list = LineList(count, self.line)

    def line(self, row: int) -> Text:
        self.made.add(row)
        return Text(f"line {row} [b]no markup[/b]{' long' * 30}.")

    def compose(self) -> ComposeResult:
        yield self.list

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        self.rows.append(event.row)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        self.chosen.append(event.row)


@asynccontextmanager
async def shown(count: int) -> AsyncIterator[tuple[Host, Pilot[None]]]:
    app = Host(count)
    async with app.run_test(size=(60, 10)) as pilot:
        app.list.focus()
        await pilot.pause()
        yield app, pilot


def test_only_lines_on_the_screen_are_made() -> None:
    async def scene() -> None:
        async with shown(1_000_000) as (app, pilot):
            assert lines(app)[0].startswith("line 0 [b]no markup[/b] long")
            await pilot.press("end")
            await pilot.pause()
            assert any(line.startswith("line 999999 ") for line in lines(app))
            assert len(app.made) < 100

    asyncio.run(scene())


def test_keys_and_the_mouse_move_and_select() -> None:
    async def scene() -> None:
        async with shown(100) as (app, pilot):
            await pilot.press("down", "j", "up", "k", "k", "G", "down", "g", "pagedown", "enter")
            await pilot.pause()
            assert app.rows[:8] == [1, 2, 1, 0, 0, 99, 99, 0]
            assert app.chosen == [app.list.row]
            assert 5 < app.list.row < 12
            await pilot.press("home")
            await pilot.click(LineList, offset=(3, 4))
            await pilot.click(LineList, offset=(3, 5), times=2)
            await pilot.pause()
            assert app.chosen[1:] == [5]

    asyncio.run(scene())


def test_long_lines_scroll_sideways() -> None:
    async def scene() -> None:
        async with shown(3) as (app, pilot):
            for _ in range(40):
                app.list.action_scroll_right()
            app.list.scroll_to(x=200, animate=False)
            await pilot.pause()
            assert "line 0" not in lines(app)[0]
            assert "long." in lines(app)[0]

    asyncio.run(scene())


def test_no_lines() -> None:
    async def scene() -> None:
        async with shown(0) as (app, pilot):
            await pilot.press("down", "end", "enter", "pagedown")
            await pilot.click(LineList, offset=(3, 4))
            assert app.chosen == []
            app.list.show(2, lambda row: Text(f"row {row}"))
            await pilot.press("end", "enter")
            await pilot.pause()
            assert app.chosen == [1]
            assert lines(app)[:2] == ["row 0", "row 1"]

    asyncio.run(scene())
