"""Shows a panel without a terminal, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.screen import ModalScreen

from browse.listing.palette import PaletteApp


class Host(PaletteApp):
    """An app with only panels; it records their results."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[Any] = []


@asynccontextmanager
async def opened(
    panel: ModalScreen[Any], size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Host, Pilot[Any]]]:
    """Open a panel."""
    app = Host()
    async with app.run_test(size=size) as pilot:
        await app.push_screen(panel, app.results.append)
        await pilot.pause()
        await pilot.pause()
        yield app, pilot


def lines(app: App[Any]) -> list[str]:
    """Return the lines on the screen."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def text(app: App[Any]) -> str:
    return "\n".join(lines(app))


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scene."""
    asyncio.run(scene())


HOSTILE = "[bold red]x[/] \x1b[31m\x9b2J\u202e[@click=app.quit]q[/]"
SHOWN_HOSTILE = r"[bold red]x[/] \x1b[31m\u009b2J\u202e[@click=app.quit]q[/]"
