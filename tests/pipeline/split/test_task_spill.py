"""Files that tasks leave for later tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.split.shards import SCHEMA
from pipeline.split.task_spill import TaskOutputWriter, in_larger_batches, read_rows, read_shards


def _parcel(part: int, source: int, number: int, payload: bytes) -> pa.RecordBatch:
    row: dict[str, Any] = {
        "part": part,
        "range": source,
        "number": number,
        "networks": [""],
        "ends": b"",
        "rows": b"",
        "payload": payload,
    }
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def test_rows_are_read_back_in_order(tmp_path: Path) -> None:
    batches = [pa.RecordBatch.from_pydict({"x": [n, n + 1]}) for n in range(3)]
    with TaskOutputWriter(str(tmp_path), 4) as leaving:
        for batch in batches:
            leaving.write_rows("exchanges", batch)
        leaving.write_rows("records", batches[0])
    assert list(read_rows(str(tmp_path), "exchanges", 4)) == batches
    assert list(read_rows(str(tmp_path), "records", 4)) == batches[:1]


def test_rows_are_joined_into_batches_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.split.task_spill.BULK_BYTES", 64)
    batches = [pa.RecordBatch.from_pydict({"x": range(n, n + 3)}) for n in range(0, 21, 3)]
    joined = list(in_larger_batches(batches))
    assert [each.num_rows for each in joined] == [9, 9, 3]
    assert [x for each in joined for x in each["x"].to_pylist()] == list(range(21))
    assert not list(in_larger_batches([]))


def test_parcels_are_read_back_from_all_files(tmp_path: Path) -> None:
    places = []
    sent = []
    for source in (0, 1):
        with TaskOutputWriter(str(tmp_path), source) as leaving:
            for number in range(3):
                for part in (0, 1):
                    parcel = _parcel(part, source, number, bytes([source, number, part]) * 1000)
                    sent.append(parcel)
                    places.append(leaving.write_shard(parcel))
    mine = [place for place in places if place.part == 1]
    assert [(each.source, each.number) for each in mine] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)
    ]  # fmt: skip
    found = list(read_shards(str(tmp_path), mine))
    assert found == [each for each in sent if each.column("part")[0].as_py() == 1]


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        with TaskOutputWriter(str(tmp_path), 0) as leaving:
            leaving.write_rows("exchanges", pa.RecordBatch.from_pydict({"x": [1]}))
            leaving.write_shard(_parcel(0, 0, 0, b""))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


def test_a_truncated_shard_is_an_error(tmp_path: Path) -> None:
    with TaskOutputWriter(str(tmp_path), 0) as leaving:
        place = leaving.write_shard(_parcel(0, 0, 0, b"x" * 1000))
    file = tmp_path / "shards/000000.arrow"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(EOFError):
        list(read_shards(str(tmp_path), [place]))
