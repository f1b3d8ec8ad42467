from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot

from browse.detail.byte_view import ByteView
from browse.listing.palette import PaletteApp
from dissector.view.text.hexdump import hexdump
from dissector.view.text.tree_node import Block, Place
from tests.browse.detail.pane_host import lines

DATA = bytes(range(256)) * 16


class Host(PaletteApp):
    def __init__(self) -> None:
        super().__init__()
        self.bytes = ByteView()
        self.moves: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.bytes

    def on_byte_view_moved(self, event: ByteView.Moved) -> None:
        self.moves.append(event.position)


@asynccontextmanager
async def shown(
    block: Block, size: tuple[int, int] = (80, 10)
) -> AsyncIterator[tuple[Host, Pilot[None]]]:
    app = Host()
    async with app.run_test(size=size) as pilot:
        app.bytes.show(block)
        app.bytes.focus()
        await pilot.pause()
        yield app, pilot


def test_rows_are_those_of_a_hex_dump() -> None:
    async def scene() -> None:
        block = Block("request", DATA, [(3, 5), (30, 40)])
        async with shown(block) as (app, _):
            expected = hexdump(DATA, masked=block.masked)[:10]
            assert [line[:72].rstrip() for line in lines(app)] == [e.rstrip() for e in expected]

    asyncio.run(scene())


@pytest.mark.parametrize(("width", "count"), [(150, 32), (80, 16), (50, 8), (30, 4), (10, 4)])
def test_bytes_per_row_follow_the_width(width: int, count: int) -> None:
    async def scene() -> None:
        async with shown(Block("request", DATA), (width, 10)) as (app, _):
            assert [int(line[:4], 16) for line in lines(app)[:3]] == [0, count, 2 * count]

    asyncio.run(scene())


def test_keys_move_the_cursor() -> None:
    async def scene() -> None:
        async with shown(Block("request", DATA)) as (app, pilot):
            keys = ["right", "down", "left", "pagedown", "up", "pageup", "end", "right", "home"]
            await pilot.press(*keys, "left", "up")
            await pilot.pause()
            assert app.moves == [1, 17, 16, 160, 144, 0, 4095, 4095, 0, 0]
            await pilot.press("end")
            await pilot.pause()
            assert lines(app)[-1].startswith("0ff0")

    asyncio.run(scene())


def test_a_click_moves_the_cursor() -> None:
    async def scene() -> None:
        async with shown(Block("request", DATA)) as (app, pilot):
            dump = lines(app)[2]
            for column in (6, 7, 30, 31, 51, 56, 71):
                await pilot.click(ByteView, offset=(column, 2))
            await pilot.click(ByteView, offset=(2, 2))
            await pilot.pause()
            assert dump.startswith("0020  20 21")
            assert app.moves == [32, 32, 40, 46, 32, 47]

    asyncio.run(scene())


def test_a_marked_range_is_scrolled_to() -> None:
    async def scene() -> None:
        block = Block("request", DATA)
        async with shown(block) as (app, pilot):
            app.bytes.mark(Place(block, 4000, 5000))
            await pilot.pause()
            assert app.bytes.marked == range(4000, 4096)
            assert any(line.startswith("0fa0") for line in lines(app))
            app.bytes.mark(Place(block, 0, 4), moves=False)
            assert app.bytes.position == 4000
            assert app.moves == []

    asyncio.run(scene())


def test_keys_are_ignored_without_bytes() -> None:
    async def scene() -> None:
        block = Block("request", b"")
        async with shown(block) as (app, pilot):
            app.bytes.mark(Place(block, 0, 4))
            await pilot.press("down", "right", "end", "home", "pagedown")
            await pilot.click(ByteView, offset=(6, 0))
            assert app.moves == []
            assert not "".join(lines(app)).strip()

    asyncio.run(scene())


def test_only_rows_on_the_screen_are_made() -> None:
    class Counted(bytes):
        taken = 0

        def __getitem__(self, key: object) -> bytes:  # type: ignore[override]
            Counted.taken += 1
            return bytes.__getitem__(self, key)  # type: ignore[call-overload,no-any-return]

    async def scene() -> None:
        async with shown(Block("request", Counted(1 << 20))) as (app, pilot):
            await pilot.press("end")
            await pilot.pause()
            assert lines(app)[-1].startswith("ffff0  00 00")
            assert Counted.taken < 200

    asyncio.run(scene())
