"""Rows are stored once, in the folder of their day, in the order of their APIs."""

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


def test_rows_are_partitioned_by_day() -> None:
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
        f"date={NULL_PARTITION}": [3],
        "date=2024-05-01": [0, 1, 4],
        "date=2024-05-02": [2],
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
        for row in numbers:
            times = [each for each in rows[row][:2] if each is not None]
            day = f"1970-01-0{1 + times[0] // DAY_NS}" if times else NULL_PARTITION
            assert place == f"date={day}"
    assert sorted(seen) == list(range(len(rows)))
    assert len({place for place, _ in places}) == len(places)


def test_a_table_without_times_is_not_partitioned() -> None:
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
    assert found == ["exchanges/date=2024-05-01/7.parquet", "other/7.parquet"]
    assert pq.ParquetFile(tmp_path / found[0]).metadata.num_rows == 3 * len(many) + 1
    assert pq.ParquetFile(tmp_path / found[0]).num_row_groups == 2


@pytest.mark.parametrize("folders", [("date", "cluster=prod"), ("cluster=prod", "date")])
def test_a_cluster_has_a_folder_of_its_own(folders: tuple[str, ...], tmp_path: Path) -> None:
    with TableWriter(str(tmp_path), "7", file_bytes=1, folders=folders) as store:
        for _ in range(2):
            store.add("exchanges", _exchanges([(NOON_NS, None, "Fetch")] * GROUP_ROWS))
        store.add("findings", pa.RecordBatch.from_pydict({"x": [1]}))
    day = "/".join("date=2024-05-01" if each == "date" else each for each in folders)
    found = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.parquet"))
    assert found == [
        f"exchanges/{day}/7-1.parquet",
        f"exchanges/{day}/7.parquet",
        "findings/cluster=prod/7.parquet",
    ]


def test_rows_are_in_the_order_of_apis_with_statistics(tmp_path: Path) -> None:
    apis = ["Produce", None, "Fetch", "ApiVersions"]
    with TableWriter(str(tmp_path), "7") as store:
        for _ in range(3):
            store.add("exchanges", _exchanges([(NOON_NS, None, api) for api in apis]))
    [path] = tmp_path.rglob("*.parquet")
    rows = pq.ParquetFile(path).read().to_pylist()
    found = [(row["api"], row["row"]) for row in rows]
    expected = [("ApiVersions", 3), ("Fetch", 2), ("Produce", 0), (None, 1)]
    assert found == [each for each in expected for _ in range(3)]
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert (column.statistics.min, column.statistics.max) == ("ApiVersions", "Produce")
    assert column.has_column_index


def test_a_file_is_followed_by_another_at_its_size(tmp_path: Path) -> None:
    rows = [(NOON_NS, None, "Fetch")] * (GROUP_ROWS + 1)
    with TableWriter(str(tmp_path), "7", file_bytes=1) as store:
        for _ in range(3):
            store.add("exchanges", _exchanges(rows))
        store.add("exchanges", _exchanges(rows[:1]))
    files = sorted(tmp_path.rglob("*.parquet"))
    assert [each.name for each in files] == [
        "7-1.parquet",
        "7-2.parquet",
        "7-3.parquet",
        "7.parquet",
    ]
    counts = [pq.ParquetFile(each).metadata.num_rows for each in files]
    assert sorted(counts) == [1, *[len(rows)] * 3]


def test_waiting_rows_are_bounded_for_any_number_of_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.storage.parquet_store.MAX_BUFFERED_BYTES", 100_000)
    rows = [(number * DAY_NS, None, "Fetch") for number in range(50)] * 100
    batch = _exchanges([*rows, *[(7 * DAY_NS, None, "Fetch")] * 3000])
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
