"""Columns of decoded keys and values, as tasks of Spark make them; without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dissector.public import open_capture
from dissector.query.contents.decoded_values import COLUMNS
from dissector.values.value_settings import ValueSettings
from pipeline.tables.decoded_columns import with_absolute_paths, with_decoded
from pipeline.tables.table_schemas import SCHEMAS

DEMO = Path(__file__).parents[3] / "captures" / "demo.pcap"


def test_hooks_of_tasks_give_the_rows_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hooks.py").write_text(
        "def key(record):\n"
        "    return {'n': int(record.key.rpartition(b'-')[2]), 'of': len(record.value)}\n"
        "def value(record):\n"
        "    rest = record._replace(key=None, value=None, headers=dict(record.headers))\n"
        "    return [str(rest), str(record.key), len(record.value)]\n"
    )
    monkeypatch.chdir(tmp_path)
    settings = with_absolute_paths(ValueSettings(scripts=("hooks.py",)))
    monkeypatch.chdir(tmp_path.parent)
    expected = open_capture(DEMO, scripts=[tmp_path / "hooks.py"]).records()
    assert expected["value_decoded"].null_count() < len(expected)
    plain = open_capture(DEMO).records().to_dicts()
    schema = SCHEMAS["records"]
    rows = [{name: row.get(name) for name in schema.names} for row in plain]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    found = with_decoded(batch, settings).to_pylist()
    names = ("topic", "offset", *(name for name in COLUMNS if not name.endswith("problem")))
    shown = expected.select(names).to_dicts()
    assert [{name: row[name] for name in names} for row in found] == shown
