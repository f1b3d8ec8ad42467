"""TLS in the pipeline: the rows of the commands, and no secrets in stored or sent data."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dissector.errors import CaptureError
from pipeline.jobs.local_job import dissect, plan_ranges
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.tables.event_table import IncrementalEvents
from pipeline.tables.incremental import IncrementalDissection
from pipeline.tables.table_builder import TableOptions, found_keylogs
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import FOLDER
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.tables.test_incremental import finished, parcels_of

NAME = "kafka4-java-tls13"
KEYLOG = str(FOLDER / f"{NAME}.keylog")
ALL = TableOptions(tables=frozenset(SCHEMAS), keylogs=(KEYLOG,))


@pytest.fixture
def capture(tmp_path: Path) -> str:
    path = tmp_path / "a.pcap"
    path.write_bytes(gzip.decompress((FOLDER / f"{NAME}.pcap.gz").read_bytes()))
    return str(path)


def secrets() -> list[str]:
    lines = Path(KEYLOG).read_text().splitlines()
    return [line.split()[2] for line in lines if line and not line.startswith("#")]


def is_in(content: bytes, secret: str) -> bool:
    return secret.lower().encode() in content.lower() or bytes.fromhex(secret) in content


@pytest.mark.thinned(2)
@pytest.mark.parametrize("range_bytes", [3_000, 20_000])
def test_ranges_give_the_rows_of_the_commands(
    capture: str, tmp_path: Path, range_bytes: int
) -> None:
    got = dissect([capture], ALL, range_bytes=range_bytes, parts=2)
    assert got["exchanges"].num_rows == 19
    assert_same(got, tables_of([capture], tmp_path, "--keylog", KEYLOG))


def test_a_state_has_no_secrets_and_continues(capture: str, tmp_path: Path) -> None:
    plan = plan_ranges(ranges_of(Collection.of([capture]), 5_000))
    state, out = IncrementalDissection(plan.files, ALL).save(), []
    for parcel in parcels_of(plan):
        fold = IncrementalDissection.load(state, plan.files, ALL)
        out += fold.feed([parcel])
        state = fold.save()
        assert not any(is_in(state, secret) for secret in secrets())
    fold = IncrementalDissection.load(state, plan.files, ALL)
    out += fold.finish()
    expected = tables_of([capture], tmp_path, "--keylog", KEYLOG)
    del expected["events"]
    assert_same(finished(out), expected)


@pytest.mark.long
def test_the_state_of_events_has_no_secrets_and_continues(capture: str, tmp_path: Path) -> None:
    plan = plan_ranges(ranges_of(Collection.of([capture]), 5_000))
    state, out = IncrementalEvents(plan.files, ALL).save(), []
    for parcel in parcels_of(plan):
        found = IncrementalEvents.load(state, plan.files, ALL)
        out += found.feed([parcel], 1 << 30)
        state = found.save()
        assert not any(is_in(state, secret) for secret in secrets())
    out += IncrementalEvents.load(state, plan.files, ALL).finish()
    table = pa.Table.from_batches([batch for _, batch in out])
    expected = tables_of([capture], tmp_path, "--keylog", KEYLOG)
    assert_same({"events": table}, {"events": expected["events"]})


@pytest.mark.long
def test_a_state_has_no_uninitialised_memory(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such memory may have contained the key log."""
    marker, allocate = b"secret!!", np.empty

    def marked(shape: Any, *more: Any, **named: Any) -> Any:
        array = allocate(shape, *more, **named)
        content = array.reshape(-1).view(np.uint8)
        content[:] = np.resize(np.frombuffer(marker, np.uint8), content.shape)
        return array

    plan = plan_ranges(ranges_of(Collection.of([capture]), 5_000))
    parcels = parcels_of(plan)
    monkeypatch.setattr(np, "empty", marked)
    fold = IncrementalDissection(plan.files, ALL)
    for parcel in parcels:
        for _ in fold.feed([parcel]):
            pass
        assert marker not in fold.save()


@pytest.mark.long
def test_forgotten_connections(capture: str, tmp_path: Path) -> None:
    plan = plan_ranges(ranges_of(Collection.of([capture]), 5_000))
    fold, out = IncrementalDissection(plan.files, ALL), []
    for parcel in parcels_of(plan):
        out += fold.feed([parcel])
        out += fold.forget(0, 2**62)
    out += fold.finish()
    found, expected = finished(out), tables_of([capture], tmp_path, "--keylog", KEYLOG)
    assert found["exchanges"].num_rows == len(expected["exchanges"])


def test_tasks_get_names_of_key_logs_only() -> None:
    content = pickle.dumps(replace(ALL, keylogs=found_keylogs([KEYLOG])))
    assert KEYLOG.encode() in content
    assert not any(is_in(content, secret) for secret in secrets())
    with pytest.raises(CaptureError, match="key log"):
        found_keylogs(["/nowhere/none.log"])


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["captures", "watch"])
def test_spark_writes_no_secret(capture: str, tmp_path: Path, mode: str) -> None:
    """Event log, spill files, checkpoints and tables; `links` retains deleted files."""
    events, temporary, links = (tmp_path / name for name in ("events", "temporary", "links"))
    for folder in (events, temporary, links):
        folder.mkdir()
    watched = tmp_path / "in"
    watched.mkdir()
    Path(capture).rename(watched / "a.pcap")
    words = ["--watch", str(watched), "--once"] if mode == "watch" else [str(watched)]
    log = ("enabled=true", "compress=false", f"dir={events.as_uri()}")
    command = [
        sys.executable, "-m", "pipeline", *words, "--out", str(tmp_path / "out"),
        "--keylog", KEYLOG, "--master", "local[2]", "--range-mb", "1", "--parts", "2",
        *(word for each in log for word in ("--conf", f"spark.eventLog.{each}")),
    ]  # fmt: skip
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)})
    link_files(process, temporary, links)
    assert process.returncode == 0
    written = [
        path
        for folder in (events, links, tmp_path / "out")
        for path in folder.rglob("*")
        if path.is_file()
    ]
    assert [path for path in written if path.parent == links]
    content = {path: path.read_bytes() for path in written}
    assert any(b"SparkListenerJobStart" in data for data in content.values())
    assert [
        (path, secret)
        for path, data in content.items()
        for secret in secrets()
        if is_in(data, secret)
    ] == []


def link_files(process: subprocess.Popen[bytes], folder: Path, links: Path) -> None:
    """Link all files below a folder, as they appear, until the process ends."""
    seen: set[Path] = set()
    names = itertools.count()
    while process.poll() is None:
        # `walk` passes over folders that Spark deletes meanwhile; `rglob` raises.
        found = {Path(place, name) for place, _, files in os.walk(folder) for name in files}
        for path in found - seen:
            seen.add(path)
            with contextlib.suppress(OSError):
                os.link(path, links / str(next(names)))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
