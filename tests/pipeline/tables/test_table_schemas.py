"""Message definitions are sent to the tasks of a pipeline."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from dissector import Options, Schemas
from dissector.engine.reading.capture import Capture
from pipeline.jobs.local_job import dissect
from pipeline.tables.table_builder import TableOptions
from tests import definitions

TABLES = frozenset(("exchanges", "fields", "messages", "problems"))


@pytest.mark.parametrize("count", [4, 150])
def test_tables_by_definitions(tmp_path: Path, count: int) -> None:
    source = definitions.vendor(tmp_path / "vendor")
    path = definitions.write_pings(tmp_path / "a.pcap", source, count)
    options = TableOptions(tables=TABLES, schemas=Schemas.of(source))
    # As sent by a job to a task.
    made = dissect([path], pickle.loads(pickle.dumps(options)))
    expected = Capture([path], Options(schemas=Schemas.of(source))).exchanges()
    assert made["exchanges"].column("api").to_pylist() == expected["api"].to_list()
    assert made["exchanges"].column("problems").to_pylist() == expected["problems"].to_list()
    assert made["exchanges"].column("topics").to_pylist() == expected["topics"].to_list()
    paths = set(made["fields"].column("path").to_pylist())
    assert {"points.topic", "access_token", "node"} <= paths
    assert "hush" not in str(made["messages"].to_pylist()) + str(made["fields"].to_pylist())
    assert made["problems"].num_rows == 2 * count
    without = dissect([path], TableOptions(tables=TABLES))
    assert set(without["exchanges"].column("api").to_pylist()) == {"Metadata", "api 600"}
