"""Captures as given by Python callers: names of files, file objects, bytes, and lists of these."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from dissector.capture.formats.inputs import BytesInput, FileInput, Input
from dissector.errors import UsageError

Source: TypeAlias = str | Path | bytes | bytearray | memoryview | BinaryIO
"""The name of a file, the content of one, or a file object that is open for reading bytes."""

Sources: TypeAlias = Source | Iterable[Source]


def named_inputs(captures: Iterable[Sources]) -> tuple[list[str], dict[str, Input]]:
    """
    Return the names of the files of a capture, and the inputs other than files on disk.

    A file object has the name of its file, bytes are called `<bytes>`.

    Raises:
        UsageError: An item is not a possible capture.
    """
    names: list[str] = []
    inputs: dict[str, Input] = {}

    def add(capture: Any) -> None:
        if isinstance(capture, str | os.PathLike):
            names.append(os.fspath(capture))
            return
        name, found = _input(capture)
        number, unique = 1, name
        while unique in names:
            number += 1
            unique = f"{name} {number}"
        inputs[unique] = found
        names.append(unique)

    for capture in captures:
        for each in capture if isinstance(capture, list | tuple) else [capture]:
            add(each)
    return names, inputs


def _input(capture: Any) -> tuple[str, Input]:
    if isinstance(capture, bytes | bytearray | memoryview):
        return "<bytes>", BytesInput(capture)
    if isinstance(capture, io.TextIOBase):
        raise UsageError("the file is open for text; a capture is opened with mode 'rb'")
    if getattr(capture, "closed", False) is True:
        raise UsageError("the file is closed")
    if hasattr(capture, "read"):
        name = getattr(capture, "name", None)
        return name if isinstance(name, str) and name else "<file>", FileInput(capture)
    raise UsageError(
        "a capture is the name of a file, an open file or bytes, "
        f"not {type(capture).__name__}; .feed() of a capture takes packets"
    )
