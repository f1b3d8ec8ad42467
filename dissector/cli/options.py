"""The options that commands share, and what they open."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissector.cli.output import ROW_FORMATS
from dissector.cli.progress import Progress
from dissector.engine.capture import Capture, Options
from dissector.engine.exchange import Exchange
from dissector.engine.frames import MAX_FRAME_BYTES
from dissector.errors import Problem, UsageError
from dissector.view.escape import escaped

if TYPE_CHECKING:
    from dissector.filter import Filter

WINDOW_BYTES = 32 << 20

Captures = Annotated[
    list[str],
    typer.Argument(
        metavar="CAPTURE...",
        help="pcap or pcapng files, also compressed, in time order; - is standard input.",
        show_default=False,
    ),
]
FilterText = Annotated[
    str | None,
    typer.Option(
        "-Y", "--filter", metavar="FILTER", help="Display filter: only what it lets pass."
    ),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to a file, not to stdout."),
]
RowFormat = Annotated[
    str, typer.Option("-T", "--format", metavar="FORMAT", help="|".join(ROW_FORMATS))
]
Sort = Annotated[
    str | None,
    typer.Option("--sort", metavar="COLUMN[,COLUMN]", help="Sort the rows, in memory."),
]
Ports = Annotated[
    list[int] | None,
    typer.Option(
        "--port",
        metavar="N",
        min=1,
        max=65535,
        help="Take connections on this port for Kafka, and no others. May be given more than once. "
        "By default Kafka is recognised by its content, on any port.",
    ),
]
MaxFrame = Annotated[
    int,
    typer.Option(
        "--max-frame-bytes",
        metavar="N",
        min=1,
        help="Larger messages are passed over as a problem.",
    ),
]
ShowSecrets = Annotated[
    bool,
    typer.Option("--show-secrets", help="Show passwords, tokens and salts instead of ***."),
]
MAX_FRAME = MAX_FRAME_BYTES


@dataclass(slots=True)
class Source:
    """
    The captures of a command, with what it wants of them.

    Attributes:
        capture: The capture.
        filter: Only the exchanges that it lets pass are given.
        problems: How many problems of the files were told.
    """

    capture: Capture
    filter: Filter | None = None
    problems: int = 0

    def passes(self, exchange: Exchange) -> bool:
        """Tell whether the filter lets an exchange pass."""
        return self.filter is None or self.filter.matches(exchange)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the exchanges that pass."""
        for window in self.windows():
            yield from filter(self.passes, window)

    def windows(self) -> Iterator[Iterator[Exchange]]:
        """
        Yield all exchanges, window by window; damage of the files is told on stderr as it comes up.

        What was written of a window is on its way when the next one is waited for.
        """
        with Progress(self.capture) as progress:
            for window in self.capture.windows():
                for name, problem in window.problems:
                    progress.clear()
                    self._tell(name, problem)
                progress.show()
                yield self.capture.exchanges_of(window)
                if "-" in self.capture.paths:
                    sys.stdout.flush()

    def _tell(self, name: str, problem: Problem) -> None:
        self.problems += 1
        place = "" if problem.position is None else f" at byte {problem.position:,}"
        print("kafkashark:", escaped(f"{name}: {problem.what}{place}"), file=sys.stderr)


def source(
    captures: list[str],
    filter_text: str | None = None,
    ports: list[int] | None = None,
    max_frame_bytes: int = MAX_FRAME,
    output: str | None = None,
) -> Source:
    """
    Return the captures that a command asks for.

    Raises:
        FilterError: The filter is none.
        UsageError: The output would overwrite one of the captures.
    """
    for name in captures:
        if output is not None and _is_same_file(name, output):
            raise UsageError(f"{output} is one of the captures; -o would overwrite it")
    chosen = None
    if filter_text is not None:
        from dissector.filter import parse

        chosen = parse(filter_text)
    options = Options(
        ports=frozenset(ports or ()), max_frame_bytes=max_frame_bytes, window_bytes=WINDOW_BYTES
    )
    return Source(Capture(captures, options), chosen)


def _is_same_file(capture: str, output: str) -> bool:
    try:
        return Path(output).is_file() and Path(output).samefile(capture)
    except OSError:
        return False


def one_of(value: str, allowed: tuple[str, ...], option: str) -> str:
    """
    Return the value of an option that has few.

    Raises:
        UsageError: It is none of them.
    """
    if value not in allowed:
        raise UsageError(f"{option} takes {', '.join(allowed)}, not {value!r}")
    return value
