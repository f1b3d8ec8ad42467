"""The state of a part of a watch is bounded by concurrent traffic, not by its history."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.split.task_spill import read_rows
from pipeline.tables.incremental import FIRST_PACKETS
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.ingest import FILE_PART, split_file
from pipeline.watch.operator_state import MIN_FILE_NAMES, IngestRow, OperatorState, WatchSettings
from tests.pipeline.command_tables import tables_of
from tests.pipeline.split.test_range_reader import bad_disk
from tests.pipeline.split_captures import TURN_NS, record_starts, short_connections
from tests.tcp_captures import Packet, write

PARTS = 2


def _setting(tmp_path: Path) -> WatchSettings:
    return WatchSettings(
        str(tmp_path / "work"), TableOptions(tables=frozenset(SCHEMAS)), PARTS, TURN_NS
    )


def _files(tmp_path: Path, packets: list[Packet], count: int) -> list[str]:
    bounds = [round(n * len(packets) / count) for n in range(count + 1)]
    return [
        write(tmp_path / f"a.pcap{n:04d}", packets[begin:end])
        for n, (begin, end) in enumerate(pairwise(bounds))
    ]


def _notes(files: list[str], setting: WatchSettings) -> dict[int, list[IngestRow]]:
    """Return the shards of files of one batch."""
    found: dict[int, list[IngestRow]] = {part: [] for part in (FILE_PART, *range(PARTS + 1))}
    for file in files:
        for batch in split_file(file, setting.work, PARTS, setting.options):
            for row in batch.to_pylist():
                found[row["part"]].append(row)
    return found


def _rows(left: list[IngestRow], table: str) -> list[pa.RecordBatch]:
    return [
        row
        for note in left
        if table in note["tables"]
        for batch in read_rows(note["folder"], table, note["source"])
        for row in batch.to_pylist()
    ]


@pytest.mark.long
@pytest.mark.parametrize("together", [4, 1])
def test_rows_do_not_depend_on_the_batches_of_files(
    together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state does not grow with the number of files."""
    monkeypatch.setattr("dissector.engine.correlation.state_tables.SPARE_BYTES", 1 << 10)
    files = _files(tmp_path, short_connections(5, turns=12), 24)
    setting = _setting(tmp_path)
    kept = {part: pickle.dumps(OperatorState()) for part in range(PARTS + 1)}
    rows: dict[str, int] = dict.fromkeys((*SCHEMAS, FIRST_PACKETS), 0)
    sizes = []
    for at in range(0, len(files), together):
        notes = _notes(files[at : at + together], setting)
        for part, state in kept.items():
            mine = pickle.loads(state)
            left = mine.process_files(part, notes[part], setting)
            kept[part] = pickle.dumps(mine)
            for table in rows:
                rows[table] += len(_rows(left, table))
        sizes.append(sum(map(len, kept.values())))
    expected = tables_of(files, tmp_path)
    assert rows[FIRST_PACKETS] == len(expected["connections"])
    # All but the last connections are reported.
    assert 0.7 < rows["connections"] / rows[FIRST_PACKETS] < 1
    assert 0.8 < rows["exchanges"] / len(expected["exchanges"]) <= 1
    assert max(sizes[len(sizes) // 2 :]) < 1.3 * max(sizes[: len(sizes) // 2])


def test_names_of_files_are_forgotten(tmp_path: Path) -> None:
    [file] = _files(tmp_path, short_connections(1, turns=1)[:4], 1)
    setting, kept = _setting(tmp_path), OperatorState()
    kept.starts = list(range(3 * MIN_FILE_NAMES))
    kept.names = [f"{number}.pcap" for number in kept.starts]
    kept.arrivals.packets = 3 * MIN_FILE_NAMES
    kept.process_files(0, _notes([file], setting)[0], setting)
    assert len(kept.starts) == len(kept.names) == MIN_FILE_NAMES
    assert kept.names[-1] == file


def test_a_file_is_processed_up_to_its_unreadable_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All shards count the same packets; bytes behind them are a problem."""
    [file] = _files(tmp_path, short_connections(1, turns=1), 1)
    starts = record_starts(Path(file))
    bad = starts[len(starts) // 2]
    monkeypatch.setattr("pipeline.storage.filesystems.io.FileIO", bad_disk(bad, 1 << 30))
    setting = _setting(tmp_path)
    notes = _notes([file], setting)
    monkeypatch.undo()
    assert {note["packets"] for each in notes.values() for note in each} == {len(starts) // 2}
    [problem] = _rows(
        OperatorState().process_files(FILE_PART, notes[FILE_PART], setting), "problems"
    )
    assert (problem["capture"], problem["position"]) == (file, bad)
