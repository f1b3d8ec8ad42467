"""
Differences that are accepted: those of a file, a line each, and those of an upgrade.

A line is what equal differences have in common: the pattern of the field, and for an error code
both errors. It has no names, offsets or times, so it stays the same from run to run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from dissector.errors import UsageError
from dissector.protocol.error_codes import error_name
from replay.noise import general
from replay.outcome import Difference

_HEADING = (
    "# Differences of `kafkashark replay` that are accepted (--accept).",
    "# field, or error code: captured -> replayed",
)

BY_UPGRADE, BY_FILE, BY_GAP = "upgrade", "file", "gap"


class Place(NamedTuple):
    """
    What equal differences have in common.

    Attributes:
        pattern: Of their paths, with the API before.
        captured: Name of the captured error, where the field is an error code; else empty.
        replayed: The same of the live one.
    """

    pattern: str
    captured: str = ""
    replayed: str = ""

    @classmethod
    def of(cls, api: str, difference: Difference, by_setting: bool = True) -> Self:
        """Return the place of a difference; settings have one each, or one for all."""
        pattern = general(api, difference.path, by_setting)
        values = difference.captured, difference.replayed
        if not difference.is_error or not all(isinstance(value, int) for value in values):
            return cls(pattern)
        return cls(pattern, *map(error_name, values))

    @property
    def errors(self) -> str:
        """Both errors; empty where the field is no error code."""
        return f"{self.captured} -> {self.replayed}" if self.captured else ""

    @property
    def line(self) -> str:
        """The line that stands for it in a file of accepted differences."""
        return f"{self.pattern}: {self.errors}" if self.captured else self.pattern


class Accepted:
    """
    Differences that are accepted.

    Args:
        lines: As `Place.line` has them.
        upgrade: Whether those are too that an upgrade of the broker brings: the APIs and features
            that it offers, and changed defaults of settings.

    Attributes:
        lines: The lines.
    """

    def __init__(self, lines: Iterable[str] = (), upgrade: bool = False) -> None:
        self.lines = tuple(dict.fromkeys(lines))
        self.upgrade = upgrade
        self._known = frozenset(self.lines)
        self._met: set[str] = set()

    @classmethod
    def of(cls, file: str | Path | None, upgrade: bool = False) -> Self:
        """Read a file, where there is one; see `read`."""
        return cls(upgrade=upgrade) if file is None else cls.read(file, upgrade)

    @classmethod
    def read(cls, file: str | Path, upgrade: bool = False) -> Self:
        """
        Read a file; lines that begin with `#` are remarks.

        Raises:
            UsageError: It can't be read.
        """
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise UsageError(f"{file}: can not be read ({why})") from None
        found = (line.strip() for line in lines)
        return cls([line for line in found if line and not line.startswith("#")], upgrade)

    def by(self, api: str, place: Place, difference: Difference) -> str:
        """Return what accepts a difference: `BY_FILE`, `BY_UPGRADE`, or nothing."""
        if place.line in self._known:
            self._met.add(place.line)
            return BY_FILE
        is_of_upgrade = difference.is_default or (api == "ApiVersions" and difference.path)
        if self.upgrade and is_of_upgrade and not difference.is_error:
            return BY_UPGRADE
        return ""

    @property
    def stale(self) -> list[str]:
        """The lines that stand for no difference so far."""
        return [line for line in self.lines if line not in self._met]


def accepted_lines(places: Iterable[Place]) -> Iterable[str]:
    """Yield a file that accepts differences."""
    yield from _HEADING
    yield from sorted({place.line for place in places})
