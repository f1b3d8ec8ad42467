"""`browse --web` against other sites, other programs, and too many browsers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import ClientSession, CookieJar, WSMsgType, WSServerHandshakeError, web

from browse.app.screen_server import MAX_SESSIONS, ScreenServer
from browse.app.web_access import WebAccess

SCREEN = "echo __GANGLION__; printf 'D\\000\\000\\000\\002hi'; head -c 1"
"""A screen that shows `hi`, until the message that ends it."""

Test = Callable[[ScreenServer, ClientSession, str], Awaitable[None]]


def serving(test: Test) -> None:
    """Run a test with a server, a client without cookies, and the server's address."""

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            server = ScreenServer(SCREEN, "127.0.0.1", port)
            runner = web.AppRunner(await server.application())
            await runner.setup()
            await web.SockSite(runner, listener).start()
            try:
                async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
                    await test(server, client, f"127.0.0.1:{port}")
            finally:
                await runner.cleanup()

    asyncio.run(run())


PATHS = ["/", "/ws", "/static/js/textual.js", "/download/x", "/nothing"]


def test_without_the_token_nothing_is_served() -> None:
    async def test(server: ScreenServer, client: ClientSession, address: str) -> None:
        for path in PATHS:
            for query in ("", "?token=", f"?token={server.access.token[:-1]}", "?token=é"):
                answer = await client.get(f"http://{address}{path}{query}")
                assert answer.status == 403
                assert "open the address that kafkashark printed" in await answer.text()
        cookie = {server.access.cookie: "x"}
        assert (await client.get(f"http://{address}/", cookies=cookie)).status == 403

    serving(test)


def test_other_sites_are_refused_with_the_token_too() -> None:
    async def test(server: ScreenServer, client: ClientSession, address: str) -> None:
        port = address.rpartition(":")[2]
        query = f"?token={server.access.token}"
        foreign = [
            {"Host": "evil.example"},
            {"Host": f"evil.example:{port}"},
            {"Host": "127.0.0.1"},
            {"Host": "127.0.0.1:1"},
            {"Host": f"127.0.0.1:{port}.evil.example"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Origin": f"https://{address}"},
            {"Origin": f"http://localhost:{port}"},
        ]
        for path in PATHS:
            for each in foreign:
                answer = await client.get(f"http://{address}{path}{query}", headers=each)
                assert answer.status == 403, each
        for each in foreign:
            with pytest.raises(WSServerHandshakeError, match="403"):
                await client.ws_connect(f"http://{address}/ws{query}", headers=each)

    serving(test)


def test_the_printed_address_opens_the_screen() -> None:
    async def test(server: ScreenServer, client: ClientSession, address: str) -> None:
        answer = await client.get(server.access.address)
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        page = await answer.text()
        assert f'"ws://{address}/ws"' in page
        assert "<script>" not in page
        assert page.replace(address, "").count("://") == 1
        assert server.access.token not in page
        # From here on the cookie has the token.
        for path in ("/static/js/textual.js", "/static/css/xterm.css"):
            answer = await client.get(f"http://{address}{path}")
            assert answer.status == 200
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        async with client.ws_connect(f"http://{address}/ws", origin=f"http://{address}") as screen:
            shown = await screen.receive()
            assert (shown.type, shown.data) == (WSMsgType.BINARY, b"hi")

    serving(test)


def test_too_many_screens_are_refused_until_one_ends() -> None:
    async def test(server: ScreenServer, client: ClientSession, address: str) -> None:
        await client.get(server.access.address)
        screens = [await client.ws_connect(f"http://{address}/ws") for _ in range(MAX_SESSIONS)]
        page = await client.get(f"http://{address}/")
        assert page.status == 503
        assert f"all {MAX_SESSIONS} screens are in use" in await page.text()
        with pytest.raises(WSServerHandshakeError, match="503"):
            await client.ws_connect(f"http://{address}/ws")
        for screen in screens:
            await screen.receive()
        await screens.pop().close()
        while (await client.get(f"http://{address}/")).status != 200:
            await asyncio.sleep(0.01)
        screens.append(await client.ws_connect(f"http://{address}/ws"))
        for screen in screens:
            await screen.close()

    serving(test)


@pytest.mark.parametrize(
    ("listener", "local", "host", "is_known"),
    [
        ("127.0.0.1", "127.0.0.1", "LOCALHOST:8000", True),
        ("localhost", "::1", "[::1]:8000", True),
        ("::1", "::1", "[::1]:8000", True),
        ("::1", "::1", "evil.example:8000", False),
        ("10.0.0.7", "10.0.0.7", "10.0.0.7:8000", True),
        ("10.0.0.7", "10.0.0.7", "localhost:8000", False),
        ("laptop.lan", "10.0.0.7", "laptop.lan:8000", True),
        ("laptop.lan", "10.0.0.7", "10.0.0.7:8000", False),
        ("0.0.0.0", "10.0.0.7", "10.0.0.7:8000", True),
        ("0.0.0.0", "10.0.0.7", "10.0.0.8:8000", False),
        ("0.0.0.0", "127.0.0.1", "localhost:8000", True),
        ("::", "fe80::1", "[fe80::1]:8000", True),
    ],
)
def test_names_of_the_server(listener: str, local: str, host: str, is_known: bool) -> None:
    access = WebAccess(listener, 8000)
    assert (access.refusal(host, None, [access.token], local) is None) is is_known


def test_the_usual_port_is_omitted() -> None:
    access = WebAccess("127.0.0.1", 80)
    assert access.refusal("localhost", "http://localhost", [access.token], "127.0.0.1") is None
