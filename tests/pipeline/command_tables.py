"""Tables by the commands, in one process, as reference for those of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from dissector.cli import main
from pipeline.tables.table_schemas import SCHEMAS

Row = dict[str, Any]

COMMANDS = {
    "connections": ("streams",),
    "exchanges": ("pairs",),
    "records": ("records",),
    "fields": ("dissect",),
    "events": ("timeline",),
}


def tables_of(files: Sequence[str | Path], folder: Path, *more: str) -> dict[str, list[Row]]:
    """Return the rows of all tables but `problems`; `folder` is for temporary files."""
    names = [*(str(file) for file in files), *more]
    out = {}
    for table, words in COMMANDS.items():
        target = folder / f"{table}.parquet"
        assert main([*words, *names, "-T", "parquet", "-o", str(target)]) == 0
        out[table] = pl.read_parquet(target).to_dicts()
        target.unlink()
    target = folder / "messages.ndjson"
    assert main(["dissect", *names, "-T", "ndjson", "-o", str(target)]) == 0
    columns = SCHEMAS["messages"].names
    with target.open() as lines:
        out["messages"] = [{name: row[name] for name in columns} for row in map(json.loads, lines)]
    return out


def without_packets(row: Row) -> Row:
    """Return a row without the numbers of packets, and of messages, which are made of these."""
    numbers = ("packet", "request_packet", "response_packet", "message")
    kept = {name: value for name, value in row.items() if name not in numbers}
    if "evidence" in kept:
        kept["evidence"] = [without_packets(each) for each in kept["evidence"]]
    return kept


def assert_same(
    got: Mapping[str, pa.Table],
    expected: Mapping[str, list[Row]],
    part: Callable[[Row], Row] = dict,
) -> None:
    """Compare tables, with rows in any order; `part` returns what is compared of a row."""
    for name, all_rows in expected.items():
        found, rows = [part(row) for row in got[name].to_pylist()], list(map(part, all_rows))
        assert len(found) == len(rows), f"{name}: {len(found)} rows, not {len(rows)}"
        ours, theirs = sorted(found, key=repr), sorted(rows, key=repr)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == other, name
