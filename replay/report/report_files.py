"""A report as a file: its name says in which form."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dissector.errors import UsageError
from replay.report.html_report import html_lines
from replay.report.junit_report import junit_lines
from replay.report.results import Results
from replay.report.text_report import ndjson_lines, text_lines

FORMS: Mapping[str, Callable[[Results], Iterable[str]]] = {
    ".txt": text_lines,
    ".ndjson": ndjson_lines,
    ".xml": junit_lines,
    ".html": html_lines,
}
"""Suffix -> what writes it."""


def form_of(file: str | Path) -> Callable[[Results], Iterable[str]]:
    """
    Return what writes reports of the form that a file's name asks for.

    Raises:
        UsageError: It asks for none.
    """
    form = FORMS.get(Path(file).suffix.lower())
    if form is None:
        raise UsageError(f"{file}: a report is called *{', *'.join(FORMS)}")
    return form


def checked(file: str | Path) -> None:
    """
    See whether a report can be written, before what it tells of is done.

    Raises:
        UsageError: The file's name says nothing of the form, or it can't be written where it is.
    """
    form_of(file)
    check_writable(file)


def check_writable(file: str | Path) -> None:
    """
    See whether a file can be written.

    Raises:
        UsageError: It can't.
    """
    path = Path(file)
    if not path.parent.is_dir():
        raise UsageError(f"{file}: there is no folder of that name")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{file}: can not be written")


def write(report: Results, file: str | Path) -> None:
    """
    Write a report.

    Raises:
        UsageError: The file's name says nothing of the form.
    """
    write_lines(form_of(file)(report), file)


def write_lines(lines: Iterable[str], file: str | Path) -> None:
    """Write lines of text to a file."""
    with Path(file).open("w", encoding="utf-8", errors="backslashreplace") as out:
        out.writelines(f"{line}\n" for line in lines)
