"""Files of reports, in the format of their suffix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dissector.errors import UsageError
from dissector.file_roles import open_output
from dissector.view.text.value_text import json_text

Form: TypeAlias = str
"""`text`, `ndjson`, `junit` or `html`."""

FORMS: Mapping[str, Form] = {".txt": "text", ".ndjson": "ndjson", ".xml": "junit", ".html": "html"}
"""Suffix -> format."""


def form_of(file: str | Path) -> Form:
    """
    Return the format of a file, by its suffix.

    Raises:
        UsageError: The suffix is unknown.
    """
    form = FORMS.get(Path(file).suffix.lower())
    if form is None:
        raise UsageError(f"{file}: a report is called *{', *'.join(FORMS)}")
    return form


def check_report_file(file: str | Path) -> None:
    """
    Check beforehand that a report can be written.

    Raises:
        UsageError: The suffix is unknown, or the file can't be written.
    """
    form_of(file)
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


def write_lines(lines: Iterable[str], file: str | Path) -> None:
    """Write lines of text to a file."""
    with open_output(Path(file)) as out:
        out.writelines(f"{line}\n".encode("utf-8", "backslashreplace") for line in lines)


def section_lines(sections: Iterable[tuple[str, Iterable[Mapping[str, Any]]]]) -> Iterable[str]:
    """Yield the rows of sections as lines of JSON; `section` gives the kind of each row."""
    for section, rows in sections:
        for row in rows:
            yield json_text({"section": section, **row})
