from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import polars
import pytest

from dissector.cli.output import (
    OutputClosed,
    check_parquet,
    open_atomic,
    open_text,
    prefetch_first,
    terminal_width,
    write_lines,
    write_parquet,
    write_rows,
)
from dissector.engine.parquet.parquet_types import TYPES
from dissector.engine.tables.column_types import Columns, Integers
from dissector.engine.tables.columns_of import columns_of
from dissector.errors import UsageError

ROWS = [{"a": 1, "b": "x,y", "c": None}, {"a": 20, "b": 'say "hi"', "c": [1, 2]}]


class Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def isatty(self) -> bool:
        return True


def test_the_first_item_is_taken_immediately() -> None:
    taken: list[int] = []

    def items() -> Any:
        for number in range(3):
            taken.append(number)
            yield number

    rest = prefetch_first(items())
    assert taken == [0]
    assert list(rest) == [0, 1, 2]
    assert list(prefetch_first([])) == []


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "ndjson",
            '{"a": 1, "b": "x,y", "c": null}\n{"a": 20, "b": "say \\"hi\\"", "c": [1, 2]}\n',
        ),
        ("csv", 'a,b,c\r\n1,"x,y",\r\n20,"say ""hi""",1;2\r\n'),
        ("table", ' a  b\n 1  x,y\n20  say "hi"\n'),
    ],
)
def test_formats(tmp_path: Path, form: str, text: str) -> None:
    file = tmp_path / "out"
    write_rows([columns_of(ROWS)], form, str(file), ["a", "b", "c"], ["a", "b"])
    assert file.read_bytes().decode() == text


def test_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows([], "csv", None, ["a", "b"], ["a"])
    write_rows([], "ndjson", "-", ["a", "b"], ["a"])
    assert capsys.readouterr().out == "a,b\r\n"


def test_a_closed_pipe_is_not_reported_as_a_file_error(capsys: pytest.CaptureFixture[str]) -> None:
    def lines() -> Any:
        yield "first"
        raise BrokenPipeError

    with pytest.raises(OutputClosed):
        write_lines(lines(), None)
    with pytest.raises(OutputClosed), open_text(None):
        raise BrokenPipeError


def test_number_of_parts_in_memory_is_bounded(tmp_path: Path) -> None:
    held: list[ref[Any]] = []
    most = 0

    def parts() -> Iterator[Columns]:
        nonlocal most
        for number in range(100):
            column = Integers(np.full(1 << 16, number))
            held.append(ref(column.values))
            yield {"number": column}
            del column
            most = max(most, sum(each() is not None for each in held))

    file = tmp_path / "out.parquet"
    write_parquet(parts(), {"number": TYPES["int"]}, str(file), jobs=2)
    assert len(polars.read_parquet(file)) == 100 << 16
    assert most <= 8


def test_the_error_of_an_unwritable_file() -> None:
    rows = [{"number": Integers(np.arange(10))}]
    with pytest.raises(OSError, match="No space left"):
        write_parquet(rows, {"number": TYPES["int"]}, "/dev/full")


def test_the_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert (terminal_width(None), terminal_width("-"), terminal_width("file")) == (77, 77, None)
    write_rows(
        [columns_of([{"a": "x" * 200, "b": "y" * 50}])], "table", None, ["a", "b"], ["a", "b"]
    )
    assert max(map(len, sys.stdout.buffer.getvalue().decode().splitlines())) == 77
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal_width(None) is None


def test_parquet_is_refused_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    for output in (None, "-"):
        with pytest.raises(UsageError, match="-T parquet requires an output file: -o FILE"):
            check_parquet("parquet", output)
    check_parquet("parquet", "file")
    check_parquet("csv", None)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    check_parquet("parquet", None)


def test_an_unfinished_output_replaces_no_file_and_has_the_mode_of_its_last_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.write_bytes(b"dear")
    out.touch(0o600)
    with open_atomic(str(out)) as file:
        (part,) = tmp_path.glob(".*.part")
        assert part.stat().st_mode & 0o777 == 0o600
        file.write(b"rows")
    assert (out.read_bytes(), list(tmp_path.glob(".*.part"))) == (b"rows", [])

    monkeypatch.setattr("secrets.token_hex", lambda size: "guessed")
    (tmp_path / ".out.guessed.part").symlink_to(victim)
    with pytest.raises(FileExistsError), open_atomic(str(out)):
        pass
    assert victim.read_bytes() == b"dear"
