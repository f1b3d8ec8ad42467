"""
What can go wrong, and how it is said.

Two kinds. An *error* is raised: the caller asked for something impossible (no capture, no filter),
or handed bytes to a codec that do not fit. A `Problem` is not raised: it is what was wrong with
bytes of a capture that we still show, and it travels with the message, stream or capture it belongs
to.

Bytes never leave this library as any exception other than a `DissectorError`.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

SHOWN_FILTER_CHARS = 160
"""How much of a filter is shown around the place where it goes wrong."""


def bug_location(error: BaseException) -> str:
    """Return file and line of the code that raised an exception which is a mistake of ours."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(place.filename).name} line {place.lineno}"


class DissectorError(Exception):
    """The root of every exception that this project raises on purpose; its text is one line."""


class CaptureError(DissectorError):
    """
    The file is no capture, or can't be opened.

    Attributes:
        file: The name of the file as the user gave it (`-` for standard input).
        position: The byte in the (decompressed) file where it shows; None where there is none.
    """

    def __init__(self, file: str, what: str, position: int | None = None) -> None:
        self.file = file
        self.what = what
        self.position = position
        super().__init__(file, what, position)

    def __str__(self) -> str:
        at = "" if self.position is None else f" at byte {self.position:,}"
        return f"{self.file}: {self.what}{at}"


class ReadError(CaptureError):
    """
    The file can't be read now; when it is tried again it may be.

    Its `position` is a byte of the file as it lies, compressed or not.
    """


class DecodeError(DissectorError):
    """
    Bytes do not fit the declaration that should describe them.

    Attributes:
        what: What is wrong, without the place.
        path: The field where it shows, with indices: `topic_data[2].name`; empty where unknown.
        position: Offset of the first bad byte in the bytes that were given.
    """

    def __init__(self, what: str, path: str = "", position: int = 0) -> None:
        super().__init__(what, path, position)
        self.what = what
        self.path = path
        self.position = position

    def within(self, name: str) -> Self:
        """Put the name of the enclosing field, or `[index]`, before the path; return the error."""
        self.path = _join_path(name, self.path)
        return self

    def __str__(self) -> str:
        return f"{self.path or 'message'} at byte {self.position}: {self.what}"


class DefinitionError(DissectorError):
    """
    A definition can't be read.

    Attributes:
        what: What is wrong.
        place: The field, `TopicData.Index`, or the line; empty where it is the whole file.
    """

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what, place)
        self.what = what
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


class UnknownCodec(DecodeError):
    """There is no such API, version or kind of message."""

    def __str__(self) -> str:
        return self.what


class EncodeError(DissectorError):
    """
    A value can't be written as the declaration asks: a missing field, a number out of range.

    Attributes:
        what: What is wrong, without the place.
        path: The field, with indices.
    """

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(what, path)
        self.what = what
        self.path = path

    def within(self, name: str) -> Self:
        """Put the name of the enclosing field, or `[index]`, before the path; return the error."""
        self.path = _join_path(name, self.path)
        return self

    def __str__(self) -> str:
        return f"{self.path or 'message'}: {self.what}"


def _join_path(name: str, path: str) -> str:
    """Join two parts of a field's path; an index needs no dot."""
    return f"{name}.{path}" if path and not path.startswith("[") else name + path


class UsageError(DissectorError):
    """The command line asks for what there is not."""


class ForeignModule(UsageError, ImportError):
    """A module that is not ours has the name of one of our packages, and hides it."""


class ReplayError(DissectorError):
    """
    The target of a replay refused, closed, stalled or answered what can't be read.

    Attributes:
        address: Whom we talked to: `host:port`.
        what: What happened.
        advice: What may help; empty where nothing is known to.
    """

    def __init__(self, address: str, what: str, advice: str = "") -> None:
        super().__init__(address, what, advice)
        self.address = address
        self.what = what
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.address}: {self.what}" + (f"; {self.advice}" if self.advice else "")


class PipelineError(DissectorError):
    """
    Spark did not start, or gave the work up.

    Attributes:
        what: What happened.
        log: The file in which Spark says more; empty where there is none.
    """

    def __init__(self, what: str, log: str = "") -> None:
        super().__init__(what, log)
        self.what = what
        self.log = log

    def __str__(self) -> str:
        return self.what + (f" (Spark says more in {self.log})" if self.log else "")


class FilterError(DissectorError):
    """
    A display filter is not one.

    Attributes:
        text: The whole filter.
        position: Index in `text` where it goes wrong.
    """

    def __init__(self, text: str, what: str, position: int) -> None:
        self.text = text
        self.what = what
        self.position = position
        super().__init__(text, what, position)

    def __str__(self) -> str:
        return f"filter: {self.what} at column {self.position + 1}"

    def shown(self) -> str:
        """Return the message, what is near the place in the filter, and a caret under it."""
        start = max(0, self.position - SHOWN_FILTER_CHARS // 2)
        text = "".join(c if c.isprintable() else " " for c in self.text)
        near = text[start : start + SHOWN_FILTER_CHARS]
        return f"{self}\n  {near}\n  {' ' * (self.position - start)}^"


@dataclass(frozen=True, slots=True)
class Problem:
    """
    Something wrong with bytes that are shown all the same.

    Attributes:
        what: One line, for people.
        path: The field where it shows (`request.topic_data[0].name`), or empty.
        position: Offset of the byte inside the frame (after its 4-byte size), the batch or the file
            that the problem belongs to; None where no single byte is to blame.
        kind: `assumed` where the bytes were read, but by a declaration that may not be theirs;
            `foreign` where nothing is wrong with the bytes, but a message definition that is not
            built in read them.
    """

    what: str
    path: str = ""
    position: int | None = None
    kind: Literal["", "assumed", "foreign"] = ""

    @property
    def is_foreign(self) -> bool:
        """Whether it only says by whose definition the bytes were read."""
        return self.kind == "foreign"

    def __str__(self) -> str:
        place = self.path
        if self.position is not None:
            place = f"{place} at byte {self.position}".strip()
        return f"{place}: {self.what}" if place else self.what
