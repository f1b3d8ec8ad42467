"""Summaries of batches in columns, and verdicts on them, equal those of single batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conform.evidence import batch_summaries
from conform.evidence.batch_summaries import (
    BatchSummaries,
    SummarizedBatch,
    is_ascending,
    is_dense,
    last_delta_of,
    newest_timestamp_of,
)
from conform.judge import Judge
from conform.rules import REGISTRY
from dissector import open_capture
from dissector.protocol.records import Batch, Record, RecordBatch, build_records, new_message_set
from dissector.protocol.records.record import write_records
from dissector.protocol.records_fields import records_fields
from tests import tcp_captures
from tests.conform.produce_scenes import NOW_MS, RECORDS, batch, edited, fetched, produced
from tests.conform.scene import Scene
from tests.example_counts import examples

CAPTURES = sorted((Path(__file__).parents[3] / "captures").glob("*.pcap*"))
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(autouse=True)
def _any_window_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use columns for any number of batches."""
    monkeypatch.setattr(batch_summaries, "MIN_SUMMARY_BYTES", 0)


def both(scene: Scene, folder: Path) -> list[tuple[list[Batch], list[Batch]]]:
    """Return the batches of each field of a scene, from columns and one by one."""
    path = tcp_captures.write(folder / "scene.pcap", scene.wire.packets)
    capture = open_capture(path)
    pairs: list[tuple[list[Batch], list[Batch]]] = []
    for each in capture.windows():
        assert capture.reading is not None
        plain = BatchSummaries(each.exchanges)
        for row in range(len(each.exchanges)):
            exchange = capture.reading.exchange(each.exchanges, row, capture.names)
            read = plain.reader(row)
            for message in exchange.messages:
                fields = zip(records_fields(message, read), records_fields(message), strict=True)
                pairs += [(one.batches, other.batches) for one, other in fields]
    return pairs


def assert_same(found: Batch, wanted: Batch) -> None:
    assert found.position == wanted.position
    assert [str(each) for each in found.problems] == [str(each) for each in wanted.problems]
    if not isinstance(wanted, RecordBatch):
        assert found == wanted
        return
    assert isinstance(found, RecordBatch)
    columns = [each(found) for each in (is_dense, is_ascending, last_delta_of, newest_timestamp_of)]
    assert columns == [
        each(wanted) for each in (is_dense, is_ascending, last_delta_of, newest_timestamp_of)
    ]
    assert found.to_dict() == wanted.to_dict()


GOOD = batch()
SPARSE = [record._replace(offset_delta=3 * at + 1) for at, record in enumerate(GOOD.records)]
EQUAL = [record._replace(offset_delta=0) for record in GOOD.records]
FIELDS = [
    *(batch(codec=codec).to_bytes() for codec in CODECS),
    batch(base_offset=7).to_bytes() * 2,
    edited(GOOD, payload=write_records(SPARSE), last_offset_delta=9),
    edited(GOOD, payload=write_records(EQUAL)),
    edited(GOOD, attributes=8, max_timestamp=NOW_MS + 9),
    edited(GOOD, payload=b"", records_count=0),
    edited(batch([Record(key=bytes(4), value=bytes(6))]), attributes=0x30),
    GOOD.to_bytes() + batch(base_offset=2).to_bytes()[:-5],
    GOOD.to_bytes()[:-1] + b"X",
    edited(GOOD, records_count=3),
    edited(GOOD, attributes=7),
    build_records(new_message_set(RECORDS, magic=1)),
    GOOD.to_bytes() + build_records(new_message_set(RECORDS, magic=1)),
    b"",
]


@pytest.mark.parametrize("data", FIELDS)
def test_fields_are_the_same_from_columns(data: bytes, tmp_path: Path) -> None:
    for scene in (fetched(data), produced(data, GOOD.to_bytes())):
        pairs = both(scene, tmp_path)
        assert pairs
        for found, wanted in pairs:
            for one, other in zip(found, wanted, strict=True):
                assert_same(one, other)


def test_valid_batches_are_summarised_in_columns(tmp_path: Path) -> None:
    ((found, _),) = both(fetched(GOOD.to_bytes() * 3), tmp_path)
    assert [type(each) for each in found] == [SummarizedBatch] * 3


def test_few_batches_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_summaries, "MIN_SUMMARY_BYTES", 1 << 20)
    ((found, _),) = both(fetched(GOOD.to_bytes()), tmp_path)
    assert [type(each) for each in found] == [RecordBatch]


@settings(max_examples=examples(25))
@given(
    deltas=st.lists(st.integers(-3, 9), max_size=5),
    times=st.integers(-(2**63), 2**63 - 1),
    base=st.integers(-(2**63), 2**63 - 1),
)
def test_any_deltas(
    deltas: list[int], times: int, base: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = [Record(offset_delta=delta, timestamp_delta=delta) for delta in deltas]
    whole = batch([Record(), Record()], base_offset=base % 2**62)
    data = edited(
        whole,
        payload=write_records(records),
        records_count=len(records),
        base_timestamp=times,
        base_offset=base,
    )
    for found, wanted in both(fetched(data), tmp_path_factory.mktemp("scene")):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)


@pytest.mark.thinned(12)
@pytest.mark.parametrize("path", CAPTURES[::4], ids=lambda path: path.name)
def test_verdicts_are_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [rule for rule in REGISTRY.values() if rule.id[0] in "BTX"]
    fast = Judge(rules).judge_capture(open_capture(path))
    monkeypatch.setattr(batch_summaries, "MIN_SUMMARY_BYTES", np.inf)
    slow = Judge(rules).judge_capture(open_capture(path))
    assert fast.tallies == slow.tallies
    assert {key: kind.findings for key, kind in fast.kinds.items()} == {
        key: kind.findings for key, kind in slow.kinds.items()
    }
