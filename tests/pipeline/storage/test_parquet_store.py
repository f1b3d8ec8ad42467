"""Rows are stored once, in the folder of their day and API."""

from __future__ import annotations

import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.storage.parquet_store import (
    DAY_NS,
    GROUP_ROWS,
    NULL_PARTITION,
    TableWriter,
    split_by_partition,
)

NOON_NS = 1_714_564_800_000_000_000
"""2024-05-01 12:00."""


def _exchanges(rows: list[tuple[int | None, int | None, str | None]]) -> pa.RecordBatch:
    columns = {
        "api": [each[2] for each in rows],
        "request_time_ns": pa.array([each[0] for each in rows], pa.int64()),
        "response_time_ns": pa.array([each[1] for each in rows], pa.int64()),
        "row": list(range(len(rows))),
    }
    return pa.RecordBatch.from_pydict(columns).cast(
        pa.schema(
            {
                "api": pa.string(),
                "request_time_ns": pa.int64(),
                "response_time_ns": pa.int64(),
                "row": pa.int64(),
            }
        )
    )


def test_rows_are_partitioned_by_day_and_api() -> None:
    rows = [
        (NOON_NS, None, "Fetch"),
        (NOON_NS, None, "api 99/1"),
        (None, NOON_NS + DAY_NS, None),
        (None, None, "Fetch"),
        (NOON_NS + 1, NOON_NS + DAY_NS, "Fetch"),
    ]
    found = {
        place: part.column("row").to_pylist()
        for place, part in split_by_partition(_exchanges(rows))
    }
    assert found == {
        "date=2024-05-01/api=Fetch": [0, 4],
        "date=2024-05-01/api=api 99%2F1": [1],
        f"date=2024-05-02/api={NULL_PARTITION}": [2],
        f"date={NULL_PARTITION}/api=Fetch": [3],
    }


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 3 * DAY_NS),
            st.none() | st.integers(0, 3 * DAY_NS),
            st.none() | st.sampled_from(["Fetch", "Produce", "a=b"]),
        )
    )
)
def test_every_row_is_stored_in_order(
    rows: list[tuple[int | None, int | None, str | None]],
) -> None:
    seen: list[int] = []
    places = split_by_partition(_exchanges(rows))
    for place, part in places:
        numbers = part.column("row").to_pylist()
        assert numbers == sorted(numbers)
        seen += numbers
        assert "api" not in part.schema.names
        for row in numbers:
            assert place.endswith(f"api={(rows[row][2] or NULL_PARTITION).replace('=', '%3D')}")
    assert sorted(seen) == list(range(len(rows)))
    assert len({place for place, _ in places}) == len(places)


def test_a_table_without_times_or_apis_is_not_partitioned() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2]})
    assert split_by_partition(batch) == [("", batch)]
    assert split_by_partition(batch.slice(0, 0)) == []


def test_files_have_the_added_rows(tmp_path: Path) -> None:
    many = _exchanges([(NOON_NS, None, "Fetch")] * (GROUP_ROWS // 2 + 1))
    with TableWriter(str(tmp_path), "7") as store:
        for _ in range(3):
            store.add("exchanges", many)
        store.add("exchanges", _exchanges([(NOON_NS, None, "Produce")]))
        store.add("other", pa.RecordBatch.from_pydict({"x": [1]}))
        assert not list(tmp_path.rglob("*.parquet"))
    assert store.rows == {"exchanges": 3 * len(many) + 1, "other": 1}
    found = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.parquet"))
    folder = "exchanges/date=2024-05-01"
    assert found == [
        f"{folder}/api=Fetch/7.parquet",
        f"{folder}/api=Produce/7.parquet",
        "other/7.parquet",
    ]
    assert pq.ParquetFile(tmp_path / found[0]).metadata.num_rows == 3 * len(many)
    assert pq.ParquetFile(tmp_path / found[0]).num_row_groups == 2


def test_waiting_rows_are_bounded_for_any_number_of_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.storage.parquet_store.MAX_BUFFERED_BYTES", 100_000)
    rows = [(NOON_NS, None, f"api {number}") for number in range(50)] * 100
    batch = _exchanges([*rows, *[(NOON_NS, None, "api 7")] * 3000])
    before = pa.total_allocated_bytes()
    with TableWriter(str(tmp_path), "7") as store:
        for _ in range(20):
            store.add("exchanges", batch)
            assert pa.total_allocated_bytes() - before < 4_000_000
    files = [pq.ParquetFile(each) for each in tmp_path.rglob("*.parquet")]
    assert sum(file.metadata.num_rows for file in files) == 20 * len(batch)
    # The folder with most rows is written first.
    assert max(files, key=lambda file: file.metadata.num_rows).num_row_groups == 20


def test_rows_of_more_days_than_files_can_be_open_are_stored(tmp_path: Path) -> None:
    """As in a capture with wrong times."""
    batch = _exchanges([(day * DAY_NS, None, "Fetch") for day in range(300)])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    try:
        with TableWriter(str(tmp_path), "7") as store:
            store.add("exchanges", batch)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert len(files) == 300
    assert sum(pq.ParquetFile(each).metadata.num_rows for each in files) == 300


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    many = _exchanges([(NOON_NS, None, "Fetch")] * (GROUP_ROWS + 1))

    def fail() -> None:
        with TableWriter(str(tmp_path), "7") as store:
            store.add("exchanges", many)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]
