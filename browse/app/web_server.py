"""`browse --web`: its address, and the command of each browser's screen."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from dissector.cli.parsing.declarations import Options
from dissector.errors import UsageError
from dissector.installation import extra_needed

_SERVER_ONLY = ("web", "address")
"""Options of the server of the screens."""


def parse_address(text: str) -> tuple[str, int]:
    """
    Return the host and port of an address.

    Raises:
        UsageError: The address is invalid.
    """
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise UsageError(f"--address takes HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


def browse_words(given: Options) -> list[str]:
    """Return the command line of a screen in a web browser, from that of its server."""
    words, captures = ["browse"], list[str]()
    for name, each in given.declared().items():
        value = getattr(given, name)
        values: Sequence[object] = value if isinstance(value, list | tuple) else [value]
        if not each.names:
            captures += map(str, values)
        elif value == each.default or name in _SERVER_ONLY:
            continue
        elif value is True:
            words.append(each.names[-1])
        else:
            words += [f"{each.names[-1]}={one}" for one in values]
    return [*words, "--", *captures]


def serve(address: str, words: Sequence[str]) -> None:
    """
    Serve until Ctrl-C.

    Raises:
        UsageError: The address is invalid, or the server is not installed.
    """
    host, port = parse_address(address)
    if find_spec("textual_serve") is None:
        raise UsageError(extra_needed("--web", "browse"))
    from browse.app.screen_server import ScreenServer

    server = ScreenServer(shlex.join([sys.executable, "-m", "kafkashark", *words]), host, port)
    print(f"kafkashark: {server.access.address} until Ctrl-C", file=sys.stderr)
    server.serve()
