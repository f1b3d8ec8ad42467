"""Server for web browsers, with a process for each browser."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from dissector.errors import UsageError
from dissector.installation import extra_needed

_FOREIGN_LINK = re.compile(r"<link[^>]*https?://[^>]*>")


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
    from textual_serve.server import Server

    print(f"kafkashark: http://{address} until Ctrl-C", file=sys.stderr)
    command = shlex.join([sys.executable, "-m", "kafkashark", *words])
    with TemporaryDirectory() as folder:
        _write_templates(Path(folder))
        Server(command, host=host, port=port, title="kafkashark", templates_path=folder).serve()


def _write_templates(folder: Path) -> None:
    """Write the server's pages without external resources such as web fonts."""
    for page in files("textual_serve").joinpath("templates").iterdir():
        text = page.read_text(encoding="utf-8")
        (folder / page.name).write_text(_FOREIGN_LINK.sub("", text), encoding="utf-8")
