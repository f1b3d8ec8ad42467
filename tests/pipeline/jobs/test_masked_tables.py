"""No table has passwords, tokens and salts of a capture by default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dissector.values.value_settings import ValueSettings
from pipeline.jobs.local_job import dissect
from pipeline.tables.decoded_columns import found_values
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import MADE
from tests.dissector.cli.test_secrets import SCENES, SECRET, capture, plain
from tests.dissector.values.value_captures import ENTRIES, GUID, write_values
from tests.tcp_captures import WireConnection


def tables_with(
    part: bytes, path: str, *, show_secrets: bool = False, values: ValueSettings | None = None
) -> set[str]:
    """Return the tables with these bytes in a cell, raw or in hex."""
    options = TableOptions(tables=frozenset(SCHEMAS), show_secrets=show_secrets, values=values)
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


@pytest.mark.thinned(8)
@pytest.mark.parametrize("play", SCENES)
def test_no_table_has_secrets(tmp_path: Path, play: Callable[[WireConnection], None]) -> None:
    path = capture(play, tmp_path / "a.pcap")
    assert not tables_with(SECRET[:8], path)
    assert not tables_with(SECRET[-8:], path)


def test_no_table_has_a_hidden_field(tmp_path: Path) -> None:
    path = str(write_values(tmp_path / "values.pcap"))
    dump = tmp_path / "registry.json"
    dump.write_text(json.dumps(ENTRIES))
    masks = ("value.name", "key", "header.__value_schema_id")
    for part in (b"Ann", GUID.bytes):
        assert tables_with(part, path) >= {"records"}
        assert not tables_with(part, path, values=found_values([str(dump)], (), masks))
        assert not tables_with(part, path, values=found_values((), (), masks))
    options = TableOptions(tables=frozenset(SCHEMAS), values=found_values([str(dump)], (), masks))
    records = dissect([path], options)["records"].to_pylist()
    (row,) = [each for each in records if '"id": 5' in (each["value_decoded"] or "")][:1]
    assert '"name": "***"' in row["value_decoded"]
    assert (row["key"], row["value"], row["key_decoded"]) == (b"***", b"***", '"***"')
    rows = pa.RecordBatch.from_pylist(records, SCHEMAS["records"])
    again = RowFinisher(None, {}, values=options.values).fill_in_names("records", rows)
    assert again.to_pylist() == records


def test_secrets_are_shown_on_request(tmp_path: Path) -> None:
    path = capture(plain, tmp_path / "a.pcap")
    assert tables_with(SECRET, path, show_secrets=True) == {"fields"}


def test_captures_that_once_exposed_secrets() -> None:
    exposed = sorted(MADE.glob("secret-*"))
    assert len(exposed) == 7
    for path in exposed:
        assert not tables_with(b"sesame", str(path)), path.name
