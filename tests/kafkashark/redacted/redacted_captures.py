"""Captures of the corpus and their redacted copies, with the names that were replaced."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dissector.cli import main
from tools.record.manifest import keylogs

KEY = b"a key of the test"


class Copy(NamedTuple):
    """
    A capture and its redacted copy.

    Attributes:
        capture: The capture.
        redacted: The copy.
        names: The replaced names, hosts and ids -> their pseudonyms.
    """

    capture: Path
    redacted: Path
    names: dict[str, str]

    @property
    def keylogs(self) -> tuple[Path, ...]:
        """The key logs that open the capture; the copy is plain."""
        return keylogs(self.capture)


def redact(capture: Path, folder: Path, keep: str = "") -> Copy:
    """Write the redacted copy of a capture; TLS that a key log opens as plain TCP."""
    name = capture.name.partition(".pcap")[0]
    out, listed, key = (folder / f"{name}.{suffix}" for suffix in ("pcapng", "map", "key"))
    key.write_bytes(KEY)
    words: list[str | Path] = ["--key", key, "--map", listed, "-o", out]
    words += ["--keep", keep] if keep else []
    if logs := keylogs(capture):
        words += ["--decrypt", *keylog_words(logs)]
    assert main(["export", str(capture), "--redact", *map(str, words)]) == 0
    lines = [line.split("\t") for line in listed.read_text().splitlines()]
    return Copy(capture, out, {_unescaped(text): _unescaped(new) for new, text in lines})


def keylog_words(logs: Iterable[Path]) -> list[str]:
    """Return the options that name key logs."""
    return [word for each in logs for word in ("--keylog", str(each))]


def _unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape")
