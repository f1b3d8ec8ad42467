"""One connection with half of all bytes needs no more memory than a small one."""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from pipeline.jobs.crossing_keys import RangeKeys
from pipeline.jobs.local_job import plan_ranges
from pipeline.jobs.stages import Job, TaskOutput, TaskReport
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.split.task_spill import BlockLocation
from pipeline.storage.shared_folder import leave_mark
from pipeline.tables.table_builder import TableOptions
from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.tcp_captures import START_NS, Wire
from tools.record.steady import save

STATUS = Path("/proc/self/status")

RANGE_BYTES = 4 << 20
WANTED = TableOptions(tables=frozenset(("exchanges",)), window_bytes=1 << 20)


def _capture(path: Path, megabytes: int) -> str:
    """Write a capture of one long connection, and as many bytes of short ones."""
    wire = Wire()
    elephant = wire.connect(40000).syn()
    request = heartbeat(1, group_instance_id="i" * 30_000)
    pieces = [request[at : at + 1448] for at in range(0, len(request), 1448)]
    for number in range(megabytes * (1 << 20) // 60_000):
        elephant.client(*pieces).broker(beat(1))
        wire.connect(50000 + number).syn().client(*pieces).broker(beat(1)).fin()
    save(path, ((each.time_ns - START_NS, each.data) for each in wire.packets))
    return str(path)


def _peak_bytes(path: str, work: str) -> tuple[int, int, int]:
    """Run the tasks of a job; return the peak memory, the number of parcels, and their bytes."""
    plan = plan_ranges(ranges_of(Collection.of([path]), RANGE_BYTES))
    job = Job(plan.ranges, WANTED, work, work, leave_mark(work))
    keys = RangeKeys(0, plan.crossing, plan.crossing)
    reports: list[TaskReport] = []
    for each in plan.ranges:
        reports += job.dissect(each.number, [(0, keys)])
        # As Spark does after each task, to free reference cycles.
        gc.collect()
    places = [(job.part_of(note), note) for note in reports if isinstance(note, BlockLocation)]
    assert any(note.tables for note in job.gather(0, places) if isinstance(note, TaskOutput))
    peak = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) << 10, len(places), sum(parcel.length for _, parcel in places)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(not STATUS.exists(), reason="there is no /proc to ask for memory")
def test_peak_memory_does_not_grow_with_the_connection(tmp_path: Path) -> None:
    sizes = (16, 64)
    captures = {each: _capture(tmp_path / f"{each}.pcap", each) for each in sizes}
    peaks = {}
    # The first run is not measured, as compiling takes much memory.
    for turn, megabytes in enumerate((max(sizes), *sizes)):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            work = str(tmp_path / f"work-{turn}")
            peak, count, size = pool.submit(_peak_bytes, captures[megabytes], work).result()
        assert count > megabytes // 4
        # Half of all bytes are sent as parcels.
        assert 0.4 < size / (megabytes << 20) < 0.6
        peaks[megabytes] = peak
    # Keeping them would take half of the additional bytes.
    assert peaks[64] - peaks[16] < (64 - 16 << 20) // 4
