"""
Errors, which are raised, and problems, which are reported with the data.

An *error* is raised if the caller requested something impossible (a file that is not a capture, an
invalid filter) or gave a codec invalid bytes. A `Problem` is not raised: it describes an error in
captured bytes that are shown nevertheless, and is attached to their message, stream or capture.

No input bytes make this library raise an exception other than a `DissectorError`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

SHOWN_FILTER_CHARS = 160
"""Characters of a filter that are shown around the position of the error."""


def innermost_error(error: BaseException) -> BaseException:
    """Return the first error in groups of errors, as of a TaskGroup; else the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def bug_location(error: BaseException) -> str:
    """Return the file and line of an unexpected exception, a bug of ours, and its class."""
    import traceback  # loaded for a bug only

    inner = innermost_error(error)
    frames = traceback.extract_tb(inner.__traceback__)
    place = f"{Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else "no frame"
    return f"{type(inner).__name__} in {place}"


def suggestion(word: str, candidates: Collection[str]) -> str:
    """Return `; did you mean X?` for the closest candidate, or an empty text."""
    from difflib import get_close_matches  # loaded for an error only

    by_lower_case = {each.lower(): each for each in candidates}
    matches = get_close_matches(word[:60].lower(), by_lower_case, n=1)
    return f"; did you mean {by_lower_case[matches[0]]}?" if matches else ""


class DissectorError(Exception):
    """Base class of every exception that this project raises on purpose; its text is one line."""


class CaptureError(DissectorError):
    """
    The file is not a capture, or can't be opened.

    Attributes:
        file: The name of the file as the user gave it (`-` for standard input).
        what: The error, without file and position.
        position: Offset of the bad byte in the (decompressed) file; None without one.
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
    Reading the file failed; another attempt may succeed.

    Its `position` is an offset in the file as stored, compressed or not.
    """


class DecodeError(DissectorError):
    """
    Bytes do not match the declaration of their message.

    Attributes:
        what: The error, without path and position.
        path: The field at fault, with indices: `topic_data[2].name`; empty if unknown.
        position: Offset of the first bad byte in the bytes that were given.
    """

    def __init__(self, what: str, path: str = "", position: int = 0) -> None:
        super().__init__(what, path, position)
        self.what = what
        self.path = path
        self.position = position

    def within(self, name: str) -> Self:
        """Prefix the path with the enclosing field's name, or `[index]`; return the error."""
        self.path = _join_path(name, self.path)
        return self

    def __str__(self) -> str:
        return f"{self.path or 'message'} at byte {self.position}: {self.what}"


class DefinitionError(DissectorError):
    """
    A message definition is invalid.

    Attributes:
        what: The error.
        place: The field, `TopicData.Index`, or the line; empty if it is the whole file.
    """

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what, place)
        self.what = what
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


class UnknownCodec(DecodeError):
    """The API, version or kind of message does not exist."""

    def __str__(self) -> str:
        return self.what


class EncodeError(DissectorError):
    """
    A value does not match the declaration, such as a missing field or a number out of range.

    Attributes:
        what: The error, without the path.
        path: The field, with indices.
    """

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(what, path)
        self.what = what
        self.path = path

    def within(self, name: str) -> Self:
        """Prefix the path with the enclosing field's name, or `[index]`; return the error."""
        self.path = _join_path(name, self.path)
        return self

    def __str__(self) -> str:
        return f"{self.path or 'message'}: {self.what}"


def _join_path(name: str, path: str) -> str:
    """Join two parts of a field's path; no dot precedes an index."""
    return f"{name}.{path}" if path and not path.startswith("[") else name + path


class UsageError(DissectorError):
    """The options or arguments are invalid."""


class ForeignModule(UsageError, ImportError):
    """A foreign module has the name of one of our packages and shadows it."""


class ReplayError(DissectorError):
    """
    The target of a replay refused or closed the connection, timed out, or sent unreadable bytes.

    Attributes:
        address: The broker, `host:port`.
        what: The error.
        advice: A remedy; empty if none is known.
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
    Spark did not start, or its job failed.

    Attributes:
        what: The error.
        log: Spark's log file with the details; empty without one.
    """

    def __init__(self, what: str, log: str = "") -> None:
        super().__init__(what, log)
        self.what = what
        self.log = log

    def __str__(self) -> str:
        return self.what + (f" (for details see Spark's log: {self.log})" if self.log else "")


class FilterError(DissectorError):
    """
    A display filter does not parse.

    Attributes:
        text: The whole filter, or the column.
        what: The error, without the position.
        position: Index of the error in `text`.
        subject: The kind of text: `filter` or `column`.
    """

    def __init__(self, text: str, what: str, position: int, subject: str = "filter") -> None:
        self.subject = subject
        self.text = text
        self.what = what
        self.position = position
        super().__init__(text, what, position, subject)

    def __str__(self) -> str:
        return f"{self.subject}, character {self.position + 1}: {self.what}"

    def shown(self) -> str:
        """Return the message, the text around the error, and a caret under its position."""
        start = max(0, self.position - SHOWN_FILTER_CHARS // 2)
        text = "".join(c if c.isprintable() else " " for c in self.text)
        near = text[start : start + SHOWN_FILTER_CHARS]
        return f"{self}\n  {near}\n  {' ' * (self.position - start)}^"


ProblemKind = Literal[
    "", "assumed", "foreign", "limit", "length", "trailing", "control_key", "unexpected_response"
]
"""Kinds of problems that readers distinguish; empty for all others."""


@dataclass(frozen=True, slots=True)
class Problem:
    """
    A defect of bytes that are shown nevertheless.

    Attributes:
        what: Description in one line.
        path: The field at fault (`request.topic_data[0].name`), or empty.
        position: Offset of the byte inside the frame (after its 4-byte size), the batch or the file
            that the problem belongs to; None if no single byte is at fault.
        kind: `assumed` if the bytes were decoded by a declaration that may not be theirs; `foreign`
            for valid bytes that were decoded by a message definition that is not built in; `limit`
            if a limit of the dissector was reached and the rest is not read; `length` if the length
            of a message's key or value does not fit the message; `trailing` if bytes are left after
            the last record; `control_key` if the key of a control record is too short;
            `unexpected_response` if the request expects no response.
    """

    what: str
    path: str = ""
    position: int | None = None
    kind: ProblemKind = ""

    @property
    def is_foreign(self) -> bool:
        """Whether it only names the source of the message definition that decoded the bytes."""
        return self.kind == "foreign"

    def __str__(self) -> str:
        place = self.path
        if self.position is not None:
            place = f"{place} at byte {self.position}".strip()
        return f"{place}: {self.what}" if place else self.what
