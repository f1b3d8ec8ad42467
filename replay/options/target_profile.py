"""
Target profiles: documented differences of an implementation from Kafka, each with its source.

A line is `FIELD | SOURCE`, for an error code `FIELD: CAPTURED -> REPLAYED | SOURCE`, or `API |
SOURCE` for an API that the target need not have. `#` begins a comment. No line can name what would
hide a lost record: records, offsets, and errors of the APIs that carry them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from dissector.errors import UsageError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Field
from dissector.small_files import read_small_text
from replay.compare.ignore_rules import compiled_pattern, wildcard_pattern

_SHIPPED = Path(__file__).parent / "profiles"

SHIPPED = ("confluent-cloud", "event-hubs", "msk-serverless", "redpanda", "warpstream")
"""Names of the shipped profiles."""

_APIS = {name.lower(): name for name in KEYS}

_LINE = re.compile(r"(?P<field>.+?)(?:: (?P<before>\w+) -> (?P<after>\w+))? \| (?P<source>.*)")
_STEP = re.compile(r"(\w+)(?:\[[^\]]*\])?(?:\.|$)")

_CARRY_RECORDS = frozenset({"Produce", "Fetch", "ShareFetch", "ShareAcknowledge"})
"""APIs whose errors mean that records did not arrive."""

_OF_RECORDS = frozenset({Role.RECORDS, Role.OFFSET})


class ProfileLine(NamedTuple):
    """
    A documented difference.

    Attributes:
        field: The field with its API before it, or only an API.
        before: The captured error of an error code; else empty.
        after: The error of the target.
        source: The page that documents it.
    """

    field: str
    before: str
    after: str
    source: str


class TargetProfile:
    """
    The documented differences of a target.

    Args:
        lines: The lines.
        name: The name of the profile, or its file.

    Attributes:
        lines: The lines.
        name: The name of the profile, or its file; empty without one.
    """

    def __init__(self, lines: Iterable[ProfileLine] = (), name: str = "") -> None:
        self.lines, self.name = tuple(lines), name
        self._fields = [
            (each, compiled_pattern(each.field)) for each in self.lines if "." in each.field
        ]

    @classmethod
    def of(cls, name: str | Path | None) -> Self:
        """
        Return a shipped profile by its name, or one of a file; nothing without a name.

        Raises:
            UsageError: The file can't be read, or a line is invalid.
        """
        if name is None:
            return cls()
        file = _SHIPPED / f"{name}.txt" if name in SHIPPED else Path(name)
        return cls(_lines(file), str(name))

    def source_of(self, field: str, errors: Sequence[str] = ("", "")) -> str:
        """
        Return the page that documents a difference; empty if none does.

        Args:
            field: The path of the difference, with the API before it, or its pattern.
            errors: Captured and live error of an error code; empty ones otherwise.
        """
        for line, pattern in self._fields:
            if (line.before, line.after) == tuple(errors) and pattern.match(field):
                return line.source
        return ""

    def source_without(self, api_name: str) -> str:
        """Return the page that documents that the target lacks an API; empty if none does."""
        return next((each.source for each in self.lines if each.field == api_name), "")


def _lines(file: Path) -> Iterator[ProfileLine]:
    for number, text in enumerate(read_small_text(file).splitlines(), 1):
        if text.strip() and not text.lstrip().startswith("#"):
            try:
                yield _line(text.strip())
            except UsageError as error:
                raise UsageError(f"{file}: line {number}: {error}") from None


def _line(text: str) -> ProfileLine:
    found = _LINE.fullmatch(text)
    if found is None or not found["source"].startswith(("https://", "http://")):
        raise UsageError("has no source: write FIELD | https://...")
    name, _, path = found["field"].partition(".")
    if name.lower() not in _APIS:
        raise UsageError(f"{name!r} is no API")
    known = _APIS[name.lower()]
    line = ProfileLine(
        f"{known}.{path}" if path else known,
        found["before"] or "",
        found["after"] or "",
        found["source"],
    )
    if path:
        _check(known, path)
    return line


def _check(name: str, path: str) -> None:
    """
    Check the path of a field.

    Raises:
        UsageError: There is no such field, or it would hide a lost record.
    """
    declared = api(KEYS[name])
    assert declared is not None
    below: Sequence[Field] = declared.response.fields
    found: list[Field] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        found = [each for each in below if step is not None and each.name == step[1]]
        if step is None or not found:
            raise UsageError(f"{name} has no field {wildcard_pattern(path)!r} in its response")
        below = [each for one in found for each in one.fields]
        at = step.end()
    if any(_hides_records(name, each) for each in found):
        raise UsageError(f"{name}.{path} would hide lost records: no profile may mark it")


def _hides_records(name: str, field: Field) -> bool:
    """Return whether a field, or one below it, says whether records are there."""
    role = meaning_of(field).role
    is_error = role is Role.ERROR and name in _CARRY_RECORDS
    return (
        is_error or role in _OF_RECORDS or any(_hides_records(name, each) for each in field.fields)
    )
