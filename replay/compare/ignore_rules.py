"""Ignore rules: path patterns of differences, given by users or learned from a reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Self

from dissector.errors import UsageError
from dissector.protocol.apis import NAMES
from dissector.small_files import read_small_text

NO_RESPONSE = ": no answer"

_KEY = re.compile(r"\[[^\]]*\]")
_KEY_BUT_SETTINGS = re.compile(r"(?<!configs)(?<!synonyms)\[[^\]]*\]")
_PATTERN = re.compile(r"(\w+|\*)((\.|\[).*)?", re.DOTALL)
_WILD = {"[*]": r"\[[^\]]*\]", "*": r"[^.\[\]]*"}


class Noise:
    """
    Ignore rules, as patterns of differences.

    A pattern is the path of a difference with the API before it:
    `Fetch.responses[*].partitions[*].log_start_offset`. `[*]` stands for any element, `*` for any
    name, also of an API; a pattern covers everything below its path.

    Args:
        patterns: The patterns.

    Attributes:
        patterns: The patterns, without duplicates.
        ignored: Number of differences that each pattern has covered.

    Raises:
        UsageError: A pattern names no API.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self.patterns = tuple(dict.fromkeys(patterns))
        self.ignored: Counter[str] = Counter()
        self._compiled = [(pattern, compiled_pattern(pattern)) for pattern in self.patterns]

    @classmethod
    def read(cls, file: str | Path, further: Iterable[str] = ()) -> Self:
        """
        Read patterns from a file, one a line; `#` begins a comment.

        Args:
            file: The file.
            further: Additional patterns.

        Raises:
            UsageError: The file can't be read, or a line is not a pattern.
        """
        lines = read_small_text(file).splitlines()
        found = (line.partition("#")[0].strip() for line in lines)
        return cls([*filter(None, found), *further])

    def covers(self, api: str, path: str) -> bool:
        """Return whether a difference is ignored, and count it if so."""
        full = f"{api}.{path}"
        for pattern, compiled in self._compiled:
            if compiled.match(full):
                self.ignored[pattern] += 1
                return True
        return False


@lru_cache(maxsize=4096)
def field_pattern(api: str, path: str, by_setting: bool = False) -> str:
    """
    Return the pattern of all differences in the same field: any element of each array.

    A missing response has no field, and the result is not a pattern.

    Args:
        api: The name of the API.
        path: The path of the difference.
        by_setting: Whether each setting of a topic or broker has a separate pattern.
    """
    keys = _KEY_BUT_SETTINGS if by_setting else _KEY
    return f"{api}.{keys.sub('[*]', path)}" if path else f"{api}{NO_RESPONSE}"


def wildcard_pattern(pattern: str) -> str:
    """Return a pattern with each element key replaced by the wildcard."""
    return _KEY.sub("[*]", pattern)


def compiled_pattern(pattern: str) -> re.Pattern[str]:
    """
    Return an expression for the paths, with their APIs, that a pattern covers.

    Raises:
        UsageError: The pattern names no API.
    """
    found = _PATTERN.fullmatch(pattern)
    names = {name.lower(): name for name in NAMES.values()}
    if found is None or (found[1] != "*" and found[1].lower() not in names):
        raise UsageError(
            f"{pattern!r} names no API: a pattern is like Fetch.responses[*].partitions[*].records"
        )
    api = r"\w*" if found[1] == "*" else names[found[1].lower()]
    parts = re.split(r"(\[\*\]|\*)", found[2] or "")
    rest = "".join(_WILD.get(part) or re.escape(part) for part in parts)
    return re.compile(rf"{api}{rest}(?=[.\[]|\Z)", re.DOTALL)
