"""A request log has the rows of one process; what can't have them is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dissector.errors import UsageError
from dissector.request_log.log_times import use_timezone
from pipeline.jobs.local_job import dissect
from pipeline.split.collection import find_captures
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.ingest import split_file
from tests.corpus import FOLDER
from tests.pipeline.command_tables import assert_same, tables_of

LOGS = sorted(FOLDER.glob("*request-log*"))
ALL = TableOptions(tables=frozenset(SCHEMAS))


@pytest.mark.parametrize("path", LOGS, ids=[path.name for path in LOGS])
@pytest.mark.parametrize("zone", ["UTC", "+05:30"])
def test_a_log_has_the_rows_of_one_process(path: Path, zone: str, tmp_path: Path) -> None:
    try:
        expected = tables_of([path], tmp_path, "--timezone", zone)
    finally:
        use_timezone("UTC")
    assert any(row["local_ms"] is not None for row in expected["exchanges"])
    assert expected["events"]
    assert_same(dissect([str(path)], replace(ALL, timezone=zone)), expected)


def test_sets_of_logs_and_watched_logs_are_refused(tmp_path: Path) -> None:
    for others in (LOGS[1:], [FOLDER / "demo.pcap"]):
        with pytest.raises(UsageError, match=r"a request log; pipeline takes one alone"):
            find_captures([str(LOGS[0]), *map(str, others)])
    log = shutil.copy(LOGS[0], tmp_path)
    rows = [
        row
        for batch in split_file(str(log), str(tmp_path / "work"), 1, ALL)
        for row in batch.to_pylist()
    ]
    assert [row["tables"] for row in rows if row["tables"]] == [["problems", "unread"]]
    assert not any(row["packets"] for row in rows)
