"""Consecutive batches of files give the rows of one process over all of them."""

from __future__ import annotations

import pickle
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.split.task_spill import OutputLocation, read_rows_of
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.batch_facts import BatchFacts
from pipeline.watch.ingest import FILE_PART, split_file
from pipeline.watch.operator_state import OperatorState, WatchSettings
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split.test_split_fragments import fragmented
from tests.pipeline.split_captures import TURN_NS, short_connections
from tests.pipeline.test_broker_recognition import single_responses
from tests.tcp_captures import STEP_NS, Packet, write

PARTS = 3


def batches(
    files: Sequence[str], together: int, tmp_path: Path, idle_ns: int = TURN_NS
) -> Iterator[list[OutputLocation]]:
    """Run a watch without Spark, with `together` files per batch; yield the output files."""
    setting = WatchSettings(
        str(tmp_path / "work"), TableOptions(tables=frozenset(SCHEMAS)), PARTS, idle_ns
    )
    states = {part: pickle.dumps(OperatorState()) for part in (FILE_PART, *range(PARTS + 1))}
    for at in range(0, len(files), together):
        notes = defaultdict(list)
        for file in files[at : at + together]:
            for each in split_file(file, setting.work, PARTS, setting.options):
                for note in each.to_pylist():
                    notes[note["part"]].append(note)
        left = []
        for part, state in states.items():
            kept = pickle.loads(state)
            left += kept.process_files(part, notes[part], setting)
            states[part] = pickle.dumps(kept)
        yield [(note["folder"], note["source"], note["tables"]) for note in left]


def watched(
    files: Sequence[str], together: int, tmp_path: Path, idle_ns: int = TURN_NS
) -> dict[str, pa.Table]:
    """Return the rows of the batches of a watch."""
    tables = defaultdict(list)
    for batch, places in enumerate(batches(files, together, tmp_path, idle_ns)):
        finish = BatchFacts.of(str(tmp_path / "out"), batch, places).row_finisher()
        for table in SCHEMAS:
            tables[table] += [finish(table, rows) for rows in read_rows_of(places, table)]
    return {name: pa.Table.from_batches(tables[name], schema) for name, schema in SCHEMAS.items()}


def _divided(tmp_path: Path, packets: list[Packet], count: int) -> list[str]:
    """Write packets into `count` files, and a later one without TCP."""
    bounds = [round(n * len(packets) / count) for n in range(count + 1)]
    parts = [packets[begin:end] for begin, end in pairwise(bounds)]
    last_ns = max(each.time_ns for each in packets)
    parts.append([Packet(last_ns + TURN_NS + STEP_NS, b"\xff" * 12 + b"\x08\x06" + bytes(46))])
    return [write(tmp_path / f"{n:03}.pcap", part) for n, part in enumerate(parts) if part]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_short_connections(seed: int, tmp_path: Path) -> None:
    order = random.Random(seed)
    packets = short_connections(seed, turns=4)
    if seed % 2:
        # This takes longer, as each packet has its own millisecond.
        packets = fragmented(order, short_connections(seed, turns=1))
    files = _divided(tmp_path, packets, order.randrange(5, 12))
    expected = tables_of(files, tmp_path)
    for together in (1, 4):
        assert_same(watched(files, together, tmp_path / str(together)), expected)


@pytest.mark.long
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("closed", [False, True])
def test_brokers_are_known_from_all_shards(known: bool, closed: bool, tmp_path: Path) -> None:
    files = _divided(tmp_path, single_responses(known=known, closed=closed).packets, 4)
    assert_same(watched(files, 1, tmp_path), tables_of(files, tmp_path))
