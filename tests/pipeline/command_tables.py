"""Tables by the commands, in one process, as reference for those of the pipeline."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from dissector.cli import main
from dissector.column_catalogue import ACCOUNTS, VALUES, names
from pipeline.tables.table_schemas import SCHEMAS

Row = dict[str, Any]

COMMANDS = {
    "connections": ("streams",),
    "exchanges": ("pairs",),
    "records": ("records",),
    "fields": ("dissect",),
    "events": ("timeline",),
}

LACKING = {"records": VALUES, "exchanges": ACCOUNTS}
"""Columns that a command leaves out if nothing gives values for them: null in the pipeline."""


def tables_of(
    files: Sequence[str | Path], folder: Path, *more: str, late: Sequence[Path] = ()
) -> dict[str, list[Row]]:
    """
    Return the rows of all tables but `problems`.

    Args:
        files: The captures, in the order in which `late` ones are to be read.
        folder: A folder for temporary files.
        more: Further arguments of the commands.
        late: Files that keep their place among the others, whatever their times.
    """
    # The pipeline counts copies, whose originals may be in other parts.
    words_of_all = [*(str(file) for file in files), "--keep-copies", *more]
    out = {}

    def run(*words: str) -> None:
        with ExitStack() as pipes:
            for path in late:
                pipes.enter_context(_as_pipe(path))
            assert main([*words, "-o", str(target)]) == 0

    for table, words in COMMANDS.items():
        target = folder / f"{table}.parquet"
        run(*words, *words_of_all, "-T", "parquet")
        rows = pl.read_parquet(target).to_dicts()
        lacking = dict.fromkeys(names(LACKING.get(table, ())))
        out[table] = [row | lacking | row for row in rows]
        target.unlink()
    target = folder / "messages.ndjson"
    run("dissect", *words_of_all, "-T", "ndjson")
    columns = SCHEMAS["messages"].names
    with target.open() as lines:
        out["messages"] = [{name: row[name] for name in columns} for row in map(json.loads, lines)]
    return out


@contextmanager
def _as_pipe(path: Path) -> Iterator[None]:
    """Replace a file by a pipe with its bytes, for a `with` that reads it once."""
    data = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,), daemon=True)
    writer.start()
    try:
        yield
        writer.join()
    finally:
        path.unlink()
        path.write_bytes(data)


def assert_same(
    got: Mapping[str, pa.Table],
    expected: Mapping[str, list[Row]],
) -> None:
    """Compare tables, with rows in any order."""
    for name, rows in expected.items():
        found = got[name].to_pylist()
        assert len(found) == len(rows), f"{name}: {len(found)} rows, not {len(rows)}"
        ours, theirs = sorted(found, key=repr), sorted(rows, key=repr)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == other, name
