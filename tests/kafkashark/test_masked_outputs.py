"""No command shows secrets of a capture, and no copy has them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from browse.app.copy_forms import copy_forms
from dissector.cli import main
from dissector.public import open_capture
from tests.corpus import MADE, fast_and_long
from tests.dissector.cli.test_secrets import SCENES, SECRET, capture
from tests.tcp_captures import WireConnection

COMMANDS = (
    *(("timeline", "-T", form, "-o", "{file}") for form in ("text", "csv", "mermaid", "perfetto")),
    ("timeline", "--otlp", "{file}"),
    *(("conform", "-T", form, "-o", "{file}") for form in ("text", "ndjson", "sarif", "html")),
    *(("advise", "-T", form, "-o", "{file}") for form in ("text", "ndjson", "html")),
    ("report", "-o", "{file}"),
    ("export", "--redact", "-o", "{file}"),
    ("replay", "--dry-run", "--to", "mock"),
)

EXPOSED = sorted(MADE.glob("secret-*"))
"""Captures beside the project, whose secrets hold this word."""

WORD = b"sesame"


def has_secret(data: bytes, secret: bytes) -> bool:
    """Return whether some bytes have a secret, raw, in hex, or in base64."""
    encoded = [base64.b64encode(bytes(n) + secret)[4 * bool(n) : -4] for n in range(3)]
    forms = [secret, secret.hex().encode(), secret.hex(" ").encode(), *encoded]
    return any(form in data for form in forms)


def outputs(path: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, bytes]:
    """Return the output and files of each command, and the copies of `browse`."""
    found = {}
    file = folder / "out"
    for words in COMMANDS:
        file.unlink(missing_ok=True)
        command = [word.format(file=file) for word in words]
        assert main([command[0], path, *command[1:]]) in (0, 1, 2)
        printed = capsys.readouterr()
        written = file.read_bytes() if file.exists() else b""
        found[" ".join(words)] = (printed.out + printed.err).encode() + written
    for number, exchange in enumerate(open_capture(path)):
        forms = copy_forms(exchange.row(), "", exchange, [path], False)
        found |= {f"{title}, {number}": form().encode() for title, form in forms.items()}
    return found


@pytest.mark.thinned(8)
@pytest.mark.parametrize(
    "play", fast_and_long(SCENES[::3], [p for p in SCENES if p not in SCENES[::3]])
)
def test_no_command_shows_a_secret(
    play: Callable[[WireConnection], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = capture(play, tmp_path / "a.pcap")
    for what, output in outputs(path, tmp_path, capsys).items():
        assert not has_secret(output, SECRET), what
        assert not has_secret(output, SECRET[-8:]), what


@pytest.mark.thinned(8)
@pytest.mark.parametrize("path", EXPOSED, ids=lambda path: path.stem)
def test_no_command_shows_once_exposed_secrets(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, output in outputs(str(path), tmp_path, capsys).items():
        assert not has_secret(output, WORD), what


def test_secrets_are_found_in_each_encoding() -> None:
    for form in (SECRET, SECRET.hex().encode(), base64.b64encode(b"x" + SECRET)):
        assert has_secret(b"<" + form + b">", SECRET)
