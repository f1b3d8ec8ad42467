"""`kafkashark demo`: the main commands on the included capture."""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from dissector.cli.declared.file_options import DemoOptions
from dissector.cli.output import write_lines
from dissector.errors import UsageError
from dissector.installation import extra_needed

Main: TypeAlias = Callable[[list[str]], int]

CAPTURE = Path(__file__).with_name("demo.pcap.gz")

SHOWN_NAME = "demo.pcap"

STEPS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("Response times and errors", ("stats",)),
    ("Failed requests", ("pairs", "-Y", "error")),
    ("Produced records", ("records", "-Y", "api == Produce", "--sort", "time_ns")),
    ("One request, field by field", ("dissect", "-V", "-Y", "api == JoinGroup")),
    ("Conformance of clients and brokers", ("conform",)),
)

REPLAY = (
    "Responses of another broker, here an embedded one",
    ("replay", "--to", "mock", "--speed", "max", "--ignore", "ApiVersions", "--timeout", "5"),
)

MAX_LINES = 25
"""Lines that are shown of each command."""

MAX_WIDTH = 200


def demo(given: DemoOptions, main: Main) -> int:
    """Show the main commands on the included capture; `main` runs them."""
    if given.save is not None:
        _save(given.save)
        return 0
    has_mock = find_spec("confluent_kafka") is not None
    for title, words in (*STEPS, REPLAY) if has_mock else STEPS:
        status = _run(main, title, words)
        if status:
            return status
    hints = [] if has_mock else [extra_needed("a replay in this demo", "mock")]
    hints.append(f"kafkashark demo --save {SHOWN_NAME} writes the capture, to try more")
    write_lines(["", *(f"# {hint}" for hint in hints)], None)
    return 0


def _save(file: Path) -> None:
    if file.exists():
        raise UsageError(f"{file} exists already")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.decompress(CAPTURE.read_bytes()))
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None


def _run(main: Main, title: str, words: Sequence[str]) -> int:
    """Run a command and print the beginning of its output; return its exit status."""
    command, *options = words
    shown = [f"'{each}'" if " " in each else each for each in (command, SHOWN_NAME, *options)]
    # Rows are written as bytes.
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        status = main([command, str(CAPTURE), *options])
    out.seek(0)
    lines = out.read().replace(str(CAPTURE), SHOWN_NAME).splitlines()
    more = len(lines) - MAX_LINES
    cut = [line[:MAX_WIDTH] for line in lines[:MAX_LINES]] + [f"... {more} more lines"] * (more > 0)
    write_lines(["", f"# {title}", f"$ kafkashark {' '.join(shown)}", "", *cut], None)
    return status
