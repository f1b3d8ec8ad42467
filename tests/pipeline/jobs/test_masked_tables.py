"""No table has passwords, tokens and salts of a capture by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.jobs.local_job import dissect
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import MADE
from tests.dissector.cli.test_secrets import SCENES, SECRET, capture, plain
from tests.tcp_captures import WireConnection


def tables_with(part: bytes, path: str, *, show_secrets: bool = False) -> set[str]:
    """Return the tables with these bytes in a cell, raw or in hex."""
    options = TableOptions(tables=frozenset(SCHEMAS), show_secrets=show_secrets)
    forms = (part, part.hex().encode())
    return {
        name
        for name, table in dissect([path], options).items()
        for row in table.to_pylist()
        for cell in _cells(row)
        if any(form in cell for form in forms)
    }


def _cells(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _cells(each)
    else:
        yield value if isinstance(value, bytes) else str(value).encode()


@pytest.mark.thinned(4)
@pytest.mark.parametrize("play", SCENES)
def test_no_table_has_secrets(tmp_path: Path, play: Callable[[WireConnection], None]) -> None:
    path = capture(play, tmp_path / "a.pcap")
    assert not tables_with(SECRET[:8], path)
    assert not tables_with(SECRET[-8:], path)


def test_secrets_are_shown_on_request(tmp_path: Path) -> None:
    path = capture(plain, tmp_path / "a.pcap")
    assert tables_with(SECRET, path, show_secrets=True) == {"fields"}


def test_captures_that_once_exposed_secrets() -> None:
    exposed = sorted(MADE.glob("secret-*"))
    assert len(exposed) == 7
    for path in exposed:
        assert not tables_with(b"sesame", str(path)), path.name
