"""Runs the screen without a terminal, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from textual._compositor import Compositor
from textual.pilot import Pilot
from textual.widget import Widget

from browse.app.browse_app import BrowseApp
from browse.listing.capture_opening import CaptureOpening
from browse.listing.exchange_loading import ExchangeLoading
from tests.corpus import FOLDER
from tests.waiting import PATIENCE_S

DEMO = FOLDER / "demo.pcap"


class Screen:
    """A screen under test."""

    def __init__(self, app: BrowseApp, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def lines(self) -> list[str]:
        """The lines on the screen."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def click(
        self, widget: str | type[Widget], offset: tuple[int, int], button: int = 1
    ) -> None:
        """Click on what is drawn at a place of a widget."""
        assert self.lines
        await self.pilot.click(widget, offset=offset, button=button)

    async def type(self, text: str) -> None:
        """Type a text, in one step."""
        for character in text:
            await self.pilot.press({" ": "space"}.get(character, character))

    async def filter(self, text: str) -> None:
        """Apply a filter by the bar."""
        await self.pilot.press("slash")
        self.app.bar.edit(text)
        await self.press("enter")

    async def settle(self) -> None:
        """Wait until all threads are idle and their results are shown."""
        session = self.app.session
        await self.until(
            lambda: (
                (session.access.is_live or session.loading.is_done)
                and (session.run is None or session.run.is_done)
            )
        )
        self.app.take_in()
        await self.pilot.pause()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self.pilot.pause(0.01)


def undrawn(compositor: Compositor, *_: Any, **__: Any) -> None:
    """Note that the screen is up to date; what no terminal takes need not be drawn for it."""
    compositor._dirty_regions.clear()


@asynccontextmanager
async def screen(
    *captures: Path,
    size: tuple[int, int] = (120, 30),
    details: Widget | None = None,
    opening: CaptureOpening | None = None,
    is_drawn: bool = False,
    **more: Any,
) -> AsyncIterator[Screen]:
    """
    Show captures, by default those of the demo.

    It is drawn where a test looks at it: all the updates between cost a third of a test. What a
    panel covers is there only with `is_drawn`.
    """
    names = [str(each) for each in captures or (DEMO,)]
    access = (opening or CaptureOpening(names)).access()
    loading = ExchangeLoading(access)
    if not access.is_live:
        loading.start()
    app = BrowseApp(access, loading, details, **more)
    with nullcontext() if is_drawn else mock.patch.object(Compositor, "render_update", undrawn):
        async with app.run_test(size=size) as pilot:
            found = Screen(app, pilot)
            if not access.is_live:
                await found.settle()
            yield found


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scene."""
    asyncio.run(scene())
