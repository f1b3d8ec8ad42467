"""The rows of every capture equal those of a second reader."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from dissector.public import open_capture
from tests.corpus import each_capture
from tests.oracle.rows.plain_rows import Rows, rows_of
from tools.record.manifest import keylogs


@pytest.mark.thinned(3)
@each_capture("oracle")
def test_rows_equal_those_of_the_second_reader(path: Path) -> None:
    if keylogs(path) and which("tshark") is None:
        pytest.skip("tshark, which decrypts for the second reader, is not installed")
    capture = open_capture(path, keylogs=keylogs(path))
    streams, pairs = rows_of(path, keylogs(path))
    assert differences(capture.streams().to_dicts(), streams) == []
    assert differences(capture.exchanges().to_dicts(), pairs) == []
    assert len(capture.exchanges()) == len(pairs) > 0


def test_the_second_reader_shares_only_the_declarations() -> None:
    shared = {
        line.split()[1]
        for file in Path(__file__).parent.glob("plain_*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*(from|import) dissector", line)
    }
    assert shared == {f"dissector.protocol.{name}" for name in ("apis", "headers", "schema")}


def differences(found: Iterable[dict[str, Any]], expected: Rows) -> list[str]:
    """Return the values that differ in the columns of the second reader, and rows on one side."""
    ours = {identity(row): row for row in found}
    theirs = {identity(row): row for row in expected}
    return [
        *(f"only ours: {key}" for key in ours.keys() - theirs.keys()),
        *(f"only theirs: {key}" for key in theirs.keys() - ours.keys()),
        *(
            f"{key} {name}: {ours[key][name]!r}, but {value!r}"
            for key in ours.keys() & theirs.keys()
            for name, value in theirs[key].items()
            if ours[key][name] != value
        ),
    ]


def identity(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a row from others: an id may come again, but not in one packet."""
    names = ("connection", "request_packet", "response_packet", "correlation_id")
    return tuple(row.get(name) for name in names)
