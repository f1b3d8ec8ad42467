"""
tshark's statistics, `-q -z TAP`, as words of our commands: they print the same of Kafka.

Source: tshark(1), option -z.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from dissector.errors import UsageError, suggestion

TAP, QUIET = "-z", "-q"

_TIMED = "io,stat"
"""The tap that is followed by an interval in seconds."""

_TAPS: Mapping[str, Sequence[str]] = {
    _TIMED: ["stats"],
    "conv,tcp": ["streams"],
    "conv,ip": ["stats", "--talkers"],
    "endpoints,ip": ["stats", "--talkers"],
    "expert": ["findings"],
    "kafka,srt": ["stats"],
}
"""Tap -> the words of a command."""


def with_our_statistics(words: Sequence[str], is_command: Callable[[str], bool]) -> list[str]:
    """
    Return a command line without `-q -z TAP[,INTERVAL][,FILTER]`: the command that prints the same.

    Args:
        words: The words after the program's name, with `-z`; others stay as they are.
        is_command: Returns whether the first word is a command, which is replaced.

    Raises:
        UsageError: There are several taps, or one without counterpart.
    """
    taps, others = list[str](), list[str]()
    left = iter(words)
    for word in left:
        if word.startswith(TAP):
            taps.append(word.removeprefix(TAP) or next(left, ""))
        elif word != QUIET:
            others.append(word)
    if len(taps) > 1:
        raise UsageError("one -z at a time; kafkashark stats prints several tables at once")
    if others and is_command(others[0]):
        del others[0]
    return [*_words_of(taps[0]), *others]


def _words_of(tap: str) -> list[str]:
    name = next((each for each in _TAPS if f"{tap},".startswith(f"{each},")), None)
    if name is None:
        raise UsageError(f"-z takes {' | '.join(_TAPS)}, not {tap!r}{suggestion(tap, _TAPS)}")
    rest = tap[len(name) + 1 :]
    words = list(_TAPS[name])
    if name == _TIMED:
        interval, _, rest = rest.partition(",")
        if re.fullmatch(r"\d*\.?\d*", interval) is None:
            raise UsageError(f"-z {name} takes an interval in seconds, not {interval!r}")
        if interval.strip("0."):
            words += ["--by", f"{interval} s"]
    return [*words, "-Y", rest] if rest else words
