"""The HTTP server of `browse --web`: guarded requests, a limited number of screens."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from browse.app.web_access import WebAccess, headers
from browse.app.web_page import screen_page
from dissector.view.text.escape import escaped

MAX_SESSIONS = 8
"""Screens at a time: each is a process that reads the capture."""

_FULL = (
    f"kafkashark: all {MAX_SESSIONS} screens are in use: close a page that shows one, then reload\n"
)

_FONT_PIXELS = 16

_QUIT_S = 5.0
"""The time in which a screen has to quit."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScreenServer(Server):
    """
    A server of the screen.

    Attributes:
        access: Decides about requests.
    """

    def __init__(self, command: str, host: str, port: int) -> None:
        """Start; `command` runs the screen of one browser."""
        super().__init__(command, host=host, port=port, title="kafkashark")
        self.access = WebAccess(host, port)
        self._sessions = 0
        self._screens: dict[asyncio.Task[Any] | None, AppService] = {}

    def initialize_logging(self) -> None:
        """Print errors in one line; requests are not printed, as their addresses have the token."""
        logging.basicConfig(level=logging.ERROR, handlers=[_Lines()], force=True)

    async def application(self) -> web.Application:
        """Return the guarded application."""
        app: web.Application = await super()._make_app()
        app.middlewares.append(self._guard)
        app.on_response_prepare.append(_add_headers)
        return app

    _make_app = application

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: stdout is for data."""

    async def handle_index(self, request: web.Request) -> web.Response:
        """Return the page, and keep the token in a cookie."""
        if self._sessions >= MAX_SESSIONS:
            raise web.HTTPServiceUnavailable(text=_FULL)
        size = to_int(request.query.get("fontsize", ""), _FONT_PIXELS)
        page = web.Response(text=screen_page(request.host, size), content_type="text/html")
        page.set_cookie(self.access.cookie, self.access.token, httponly=True, samesite="Strict")
        return page

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a screen."""
        if self._sessions >= MAX_SESSIONS:
            raise web.HTTPServiceUnavailable(text=_FULL)
        self._sessions += 1
        try:
            return await super().handle_websocket(request)
        finally:
            screen = self._screens.pop(asyncio.current_task(), None)
            if screen is not None:
                await _end(screen)
            self._sessions -= 1

    async def _process_messages(self, websocket: web.WebSocketResponse, screen: AppService) -> None:
        self._screens[asyncio.current_task()] = screen
        await super()._process_messages(websocket, screen)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        tokens = [*request.query.getall("token", []), request.cookies.get(self.access.cookie, "")]
        local = request.transport.get_extra_info("sockname") if request.transport else None
        origin = request.headers.get("Origin")
        why = self.access.refusal(request.host, origin, tokens, local[0] if local else "")
        if why is not None:
            raise web.HTTPForbidden(text=f"kafkashark: {why}\n")
        return await handler(request)


async def _end(screen: AppService) -> None:
    """Wait for the process of a screen that was asked to quit, and kill one that does not."""
    process = screen._process
    if process is None:
        return
    try:
        await asyncio.wait_for(process.wait(), _QUIT_S)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    is_refused = response.status == web.HTTPForbidden.status_code
    response.headers.update(headers("" if is_refused else request.host))


class _Lines(logging.Handler):
    """Prints a record in one line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"kafkashark: {escaped(record.getMessage())}", file=sys.stderr)
