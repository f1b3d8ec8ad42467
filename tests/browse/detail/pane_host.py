"""Shows the panes of one exchange without a terminal, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from browse.detail import DetailPanes, FieldChosen, FieldColumn
from browse.listing.palette import PaletteApp
from dissector.public import Exchange, open_capture
from tests.corpus import FOLDER
from tests.default_frames import request, response
from tests.tcp_captures import Wire, pcap_file, pieces

_SEGMENT = 50_000
"""Bytes of a packet."""


class Host(PaletteApp):
    """An app with only the panes; it records their messages."""

    def __init__(self, show_secrets: bool = False) -> None:
        super().__init__()
        self.panes = DetailPanes(show_secrets=show_secrets)
        self.chosen: list[tuple[str, str]] = []
        self.columns: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.panes

    def on_field_chosen(self, event: FieldChosen) -> None:
        self.chosen.append((event.text, event.how))

    def on_field_column(self, event: FieldColumn) -> None:
        self.columns.append(event.path)


def lines(app: App[Any]) -> list[str]:
    """Return the lines on the screen."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


@asynccontextmanager
async def hosted(
    exchange: Exchange | None, size: tuple[int, int] = (80, 24), *, show_secrets: bool = False
) -> AsyncIterator[tuple[Host, Pilot[None]]]:
    """Show an exchange, with the focus in its tree."""
    app = Host(show_secrets)
    async with app.run_test(size=size) as pilot:
        await show(app, pilot, exchange)
        app.panes.fields.focus()
        await pilot.pause()
        yield app, pilot


async def show(app: Host, pilot: Pilot[None], exchange: Exchange | None) -> None:
    """Show another exchange, and wait for its fields."""
    app.panes.show(exchange)
    await app.workers.wait_for_complete()
    await pilot.pause()


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scene."""
    asyncio.run(scene())


def exchanges(capture: str, filter: str) -> list[Exchange]:
    """Return exchanges of a capture of the corpus."""
    return [each.kept() for each in open_capture(FOLDER / capture, filter=filter)]


def exchange_of(
    key: int, version: int, asked: dict[str, Any], answer: dict[str, Any], client_id: str = "test"
) -> Exchange:
    """Return an exchange of one API with these bodies."""
    sent = request(key, version, 7, client_id, **asked), response(key, version, 7, **answer)
    return exchange_of_frames(*sent)


def exchange_of_frames(asked: bytes, answered: bytes) -> Exchange:
    """Return an exchange of two frames with size prefixes."""
    wire = Wire()
    connection = wire.connect().syn()
    for side, frame in enumerate((asked, answered)):
        connection.send(side, *pieces(frame, range(_SEGMENT, len(frame), _SEGMENT)))
    (found,) = open_capture(pcap_file(wire.packets), ports=[9092])
    return found.kept()
