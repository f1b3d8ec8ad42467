"""The screen in a web browser: `browse --web`."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browse.screens import DEMO
from tests.browser import browser, browser_path
from tests.waiting import wait_until

pytestmark = pytest.mark.long

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def address() -> Iterator[str]:
    """Serve the demo capture; the address has the token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    words = [sys.executable, "-m", "kafkashark", "browse", str(DEMO), "--web", "--address", address]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert server.stderr is not None
        printed = re.search(r"http://\S+", server.stderr.readline().decode())
        assert printed is not None
        assert address in printed[0]
        wait_until(lambda: server.poll() is not None or is_listening(port), "the server")
        yield printed[0]
    finally:
        server.terminate()
        server.communicate()


def test_a_web_browser_shows_the_rows_and_sends_the_keys(address: str, tmp_path: Path) -> None:
    program = browser_path()
    if program is None:
        pytest.skip("Chromium is not installed")
    with browser(program, tmp_path) as page:
        page.open(address)
        page.until(lambda: b"281 exchanges" in ESCAPES.sub(b"", page.received))
        assert b"ApiVersions" in page.received
        page.until(lambda: b"What stands out: 2 breaks" in ESCAPES.sub(b"", page.received))
        page.value("document.querySelector('textarea').focus()")
        page.received = b""
        page.press("Escape")
        page.until(lambda: b"ApiVersions" in page.received)  # Escape and 2 at once are Alt-2
        page.press("2")
        page.until(lambda: b"551 messages" in ESCAPES.sub(b"", page.received))
        server = address.partition("?")[0]
        assert all(url.startswith((server, "data:")) for url in page.requested)
        # xterm.js and Chromium log pings and warnings; a policy that refuses a part is an error.
        faults = ('"level": "error"', "exceptionDetails", "Content Security Policy")
        assert not [each for each in page.complaints if any(fault in each for fault in faults)]
