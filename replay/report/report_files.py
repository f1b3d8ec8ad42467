"""Writes a report to a file, in the format of the file's suffix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dissector.errors import UsageError
from replay.report.html_report import html_lines
from replay.report.junit_report import junit_lines
from replay.report.results import Results
from replay.report.text_report import ndjson_lines, text_lines

WRITERS: Mapping[str, Callable[[Results], Iterable[str]]] = {
    ".txt": text_lines,
    ".ndjson": ndjson_lines,
    ".xml": junit_lines,
    ".html": html_lines,
}
"""Suffix -> the function that yields the lines of the format."""


def writer_of(file: str | Path) -> Callable[[Results], Iterable[str]]:
    """
    Return the function that yields the lines of a report in the format of a file's suffix.

    Raises:
        UsageError: The suffix is unknown.
    """
    form = WRITERS.get(Path(file).suffix.lower())
    if form is None:
        raise UsageError(f"{file}: a report is called *{', *'.join(WRITERS)}")
    return form


def check_report_file(file: str | Path) -> None:
    """
    Check before the replay that its report can be written.

    Raises:
        UsageError: The suffix is unknown, or the file can't be written.
    """
    writer_of(file)
    check_writable(file)


def check_writable(file: str | Path) -> None:
    """
    Check that a file can be written.

    Raises:
        UsageError: The file can't be written.
    """
    path = Path(file)
    if not path.parent.is_dir():
        raise UsageError(f"{file}: there is no folder of that name")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{file}: can not be written")


def write_report(report: Results, file: str | Path) -> None:
    """
    Write a report.

    Raises:
        UsageError: The suffix of the file is unknown.
    """
    write_lines(writer_of(file)(report), file)


def write_lines(lines: Iterable[str], file: str | Path) -> None:
    """Write lines of text to a file."""
    with Path(file).open("w", encoding="utf-8", errors="backslashreplace") as out:
        out.writelines(f"{line}\n" for line in lines)
