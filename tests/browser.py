"""
A headless Chromium, controlled over a pipe by the DevTools protocol.

It records exceptions, console messages, violations of the page's content security policy, requested
addresses, and frames of web sockets.

Source: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def browser_path() -> str | None:
    """Return an installed Chromium."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


_START = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts a browser with the pipes as the descriptors that it reads and writes."""


class Page:
    """One page of the browser."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._rest = b""
        self._number = 0
        self._session = ""
        self._loaded = False
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self.received = b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, place: Path | str, *, dark: bool = False) -> None:
        """Load a file or an address."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.size(1400, 1000)
        self._loaded = False
        self.call("Page.navigate", url=place if isinstance(place, str) else place.as_uri())
        self.until(lambda: self._loaded)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition on an expression in the page."""
        while not condition():
            self._receive()

    def size(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def value(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        common = {"key": key, "modifiers": 8 if shift else 0}
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
        if key in codes:
            common["windowsVirtualKeyCode"] = codes[key]
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def drag(self, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag with the left button."""
        for kind, (x, y), buttons in (
            ("mouseMoved", begin, 0),
            ("mousePressed", begin, 1),
            ("mouseMoved", end, 1),
            ("mouseReleased", end, 0),
        ):
            button = "left" if kind != "mouseMoved" or buttons else "none"
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button=button,
                buttons=buttons,
                clickCount=1,
            )

    def screenshot(self, path: Path) -> None:
        """Write a screenshot of the window."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def printed(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def call(self, method: str, /, **parameters: Any) -> dict[str, Any]:
        """Call a method; return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        """Return the next message, after recording events of the page."""
        while b"\0" not in self._rest:
            data = os.read(self._reading, 1 << 16)
            assert data, "the browser ended"
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.complaints.append(json.dumps(message["params"]))
            case "Network.webSocketFrameReceived":
                frame = message["params"]["response"]
                data = frame["payloadData"]
                self.received += base64.b64decode(data) if frame["opcode"] == 2 else data.encode()
            case "Network.requestWillBeSent":
                self.requested.append(message["params"]["request"]["url"])
        return message


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Page]:
    """Run a browser with its profile in a folder."""
    to_read, to_write = os.pipe(), os.pipe()
    switches = (
        *("--headless", "--no-sandbox", "--remote-debugging-pipe", "--hide-scrollbars"),
        *("--disable-gpu", "--no-first-run", f"--user-data-dir={folder}"),
    )
    process = subprocess.Popen(
        [sys.executable, "-c", _START, str(to_read[0]), str(to_write[1]), program, *switches],
        pass_fds=(to_read[0], to_write[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    os.close(to_read[0])
    os.close(to_write[1])
    try:
        yield Page(to_write[0], to_read[1])
    finally:
        os.close(to_read[1])
        os.close(to_write[0])
        process.terminate()
        process.wait()
