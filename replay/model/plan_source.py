"""The source of a plan: captures, filter, allowed APIs, ports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """
    The input of a plan.

    Attributes:
        files: Captures with their sizes in bytes; the size of standard input is None.
        filter: The display filter; empty without one.
        allow: The APIs of `--allow`.
        ports: The Kafka ports; if empty, connections are recognised by content.
        part: The part of the captures, `I/N`; empty for all.
    """

    files: tuple[tuple[str, int | None], ...] = ()
    filter: str = ""
    allow: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    part: str = ""

    @classmethod
    def of(
        cls,
        captures: Sequence[str | Path],
        filter_text: str,
        allow: Iterable[str],
        ports: Iterable[int],
        part: str = "",
    ) -> Source:
        """Return the source for these options, with the sizes of the files."""
        files = tuple((str(capture), _size(Path(capture))) for capture in captures)
        return cls(files, filter_text, tuple(sorted(allow)), tuple(sorted(ports)), part)

    @property
    def options(self) -> dict[str, Any]:
        """The options that select from the captures, by their command-line names."""
        values = {
            "filter": self.filter,
            "allow": list(self.allow),
            "port": list(self.ports),
            "part": self.part,
        }
        return {name: value for name, value in values.items() if value}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
