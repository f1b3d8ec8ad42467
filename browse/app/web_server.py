"""`browse --web`: its address, and the command of each browser's screen."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec

from dissector.errors import UsageError
from dissector.installation import extra_needed


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


def browse_words(captures: Iterable[str], given: Mapping[str, object]) -> list[str]:
    """Return command-line arguments; `given` maps options to values, None for unset ones."""
    words = ["browse"]
    for option, value in given.items():
        values: Sequence[object] = value if isinstance(value, list | tuple) else [value]
        for each in values:
            if each is True:
                words.append(option)
            elif each is not None and each is not False:
                words.append(f"{option}={each}")
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
