"""
Accepted differences: differences listed in a file, one per line, and those of a broker upgrade.

A line covers all equal differences: the pattern of the field, and for an error code both errors. It
has no names, offsets or times, so it is the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from dissector.protocol.error_codes import error_name
from dissector.small_files import read_small_text
from replay.compare.ignore_rules import field_pattern
from replay.model.outcome import Difference
from replay.options.target_profile import TargetProfile

_HEADING = (
    "# Differences of `kafkashark replay` that are accepted (--accept).",
    "# field, or error code: captured -> replayed",
)

_ARROW = " -> "

BY_UPGRADE, BY_FILE, BY_GAP, BY_PROFILE = "upgrade", "file", "gap", "profile"


class DifferenceKey(NamedTuple):
    """
    The key that equal differences share.

    Attributes:
        pattern: The pattern of their paths, prefixed with the API.
        captured: Name of the captured error if the field is an error code; else empty.
        replayed: Name of the live error, in the same form.
    """

    pattern: str
    captured: str = ""
    replayed: str = ""

    @classmethod
    def of(cls, api: str, difference: Difference, by_setting: bool = True) -> Self:
        """Return the place of a difference; `by_setting`: each setting has a separate place."""
        pattern = field_pattern(api, difference.path, by_setting)
        values = difference.captured, difference.replayed
        if not difference.is_error or not all(isinstance(value, int) for value in values):
            return cls(pattern)
        return cls(pattern, *map(error_name, values))

    @classmethod
    def unsupported(cls, api: str) -> Self:
        """Return the place of requests of an API that the target can't do."""
        return cls(f"{api}: unsupported")

    @property
    def errors(self) -> str:
        """Both errors; empty if the field is not an error code."""
        return f"{self.captured}{_ARROW}{self.replayed}" if self.captured else ""

    @classmethod
    def shown_as(cls, pattern: str, errors: str) -> Self:
        """Return the key of a field that reports show so."""
        return cls(pattern, *errors.split(_ARROW)) if errors else cls(pattern)

    @property
    def line(self) -> str:
        """The line for this place in a file of accepted differences."""
        return f"{self.pattern}: {self.errors}" if self.captured else self.pattern


class DifferenceBaseline:
    """
    The set of accepted differences.

    Args:
        lines: Lines in the format of `DifferenceKey.line`.
        upgrade: Whether to accept the differences of a broker upgrade too: offered APIs and
            features, and changed defaults of settings.
        profile: The documented differences of the target.

    Attributes:
        lines: The lines, without duplicates.
    """

    def __init__(
        self,
        lines: Iterable[str] = (),
        upgrade: bool = False,
        profile: TargetProfile = TargetProfile(),  # noqa: B008 (not changed)
    ) -> None:
        self.lines = tuple(dict.fromkeys(lines))
        self.upgrade = upgrade
        self.profile = profile
        self._line_set = frozenset(self.lines)
        self._matched: set[str] = set()

    @classmethod
    def of(
        cls,
        file: str | Path | None,
        upgrade: bool = False,
        profile: TargetProfile = TargetProfile(),  # noqa: B008 (not changed)
    ) -> Self:
        """Read a file if one is given; see `read`."""
        return cls((), upgrade, profile) if file is None else cls.read(file, upgrade, profile)

    @classmethod
    def read(
        cls,
        file: str | Path,
        upgrade: bool = False,
        profile: TargetProfile = TargetProfile(),  # noqa: B008 (not changed)
    ) -> Self:
        """
        Read a file; lines that begin with `#` are comments.

        Raises:
            UsageError: The file can't be read.
        """
        found = (line.strip() for line in read_small_text(file).splitlines())
        lines = [line for line in found if line and not line.startswith("#")]
        return cls(lines, upgrade, profile)

    def accepted_by(self, api: str, place: DifferenceKey, difference: Difference) -> str:
        """Return why a difference is accepted, such as `BY_FILE`, or an empty string."""
        if self.accepts(place):
            return BY_FILE
        is_of_upgrade = difference.is_default or (api == "ApiVersions" and difference.path)
        if self.upgrade and is_of_upgrade and not difference.is_error:
            return BY_UPGRADE
        path = f"{api}.{difference.path}"
        if difference.path and self.profile.source_of(path, (place.captured, place.replayed)):
            return BY_PROFILE  # a missing response is excused by no page
        return ""

    def accepts(self, place: DifferenceKey) -> bool:
        """Return whether a line accepts all differences of a place."""
        if place.line in self._line_set:
            self._matched.add(place.line)
            return True
        return False

    @property
    def stale(self) -> list[str]:
        """The lines that have matched no difference so far."""
        return [line for line in self.lines if line not in self._matched]


def accepted_lines(places: Iterable[DifferenceKey]) -> Iterable[str]:
    """Yield the lines of a file that accepts differences, with a heading."""
    yield from _HEADING
    yield from sorted({place.line for place in places})
