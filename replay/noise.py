"""Differences that do not count: patterns of paths, given by people or learned from a reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Self

from dissector.errors import UsageError
from dissector.protocol.apis import NAMES

NO_ANSWER = ": no answer"

_KEY = re.compile(r"\[[^\]]*\]")
_KEY_BUT_SETTINGS = re.compile(r"(?<!configs)(?<!synonyms)\[[^\]]*\]")
_PATTERN = re.compile(r"(\w+|\*)((\.|\[).*)?", re.DOTALL)
_WILD = {"[*]": r"\[[^\]]*\]", "*": r"[^.\[\]]*"}


class Noise:
    """
    Patterns of differences that do not count.

    A pattern is the path of a difference with the API before it:
    `Fetch.responses[*].partitions[*].log_start_offset`. `[*]` stands for any element, `*` for any
    name, also of an API; what lies below a path is covered by it.

    Args:
        patterns: The patterns.

    Attributes:
        patterns: The patterns.
        ignored: How many differences each has covered.

    Raises:
        UsageError: A pattern names no API.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self.patterns = tuple(dict.fromkeys(patterns))
        self.ignored: Counter[str] = Counter()
        self._compiled = [(pattern, _compiled(pattern)) for pattern in self.patterns]

    @classmethod
    def read(cls, file: str | Path, further: Iterable[str] = ()) -> Self:
        """
        Read patterns, one a line; `#` begins a remark.

        Args:
            file: The file.
            further: Patterns beside those in it.

        Raises:
            UsageError: It can't be read, or has a line that is no pattern.
        """
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise UsageError(f"{file}: can not be read ({why})") from None
        found = (line.partition("#")[0].strip() for line in lines)
        return cls([*filter(None, found), *further])

    def covers(self, api: str, path: str) -> bool:
        """Tell whether a difference does not count; one that does not is counted."""
        full = f"{api}.{path}"
        for pattern, compiled in self._compiled:
            if compiled.match(full):
                self.ignored[pattern] += 1
                return True
        return False


@lru_cache(maxsize=4096)
def general(api: str, path: str, by_setting: bool = False) -> str:
    """
    Return the pattern of all differences in the same field: any element of each array.

    Where there is no answer there is no field, and this is no pattern.

    Args:
        api: The name of the API.
        path: Of the difference.
        by_setting: Whether each setting of a topic or broker has a pattern of its own.
    """
    keys = _KEY_BUT_SETTINGS if by_setting else _KEY
    return f"{api}.{keys.sub('[*]', path)}" if path else f"{api}{NO_ANSWER}"


def of_any(pattern: str) -> str:
    """Return a pattern for any element where it names one."""
    return _KEY.sub("[*]", pattern)


def _compiled(pattern: str) -> re.Pattern[str]:
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
