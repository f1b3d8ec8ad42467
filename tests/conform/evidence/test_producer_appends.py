"""The predecessor of a batch is known only for adjacent batches."""

from __future__ import annotations

from conform.evidence.producer_appends import RETAINED_BATCHES, Append, AppendHistory
from dissector.protocol.records import RecordBatch

PLACE = ("10.0.0.2:9092", "orders", 0)


def append(offset: int, sequence: int, producer: int = 7, epoch: int = 0, error: int = 0) -> Append:
    batch = RecordBatch(
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        last_offset_delta=1,
        records_count=2,
    )
    return Append("", PLACE, batch, error, offset)


def previous(*appends: Append) -> AppendHistory:
    runs = AppendHistory()
    for each in appends:
        runs.record(each)
    return runs


def test_the_first_batch_has_no_known_predecessor() -> None:
    assert AppendHistory().producer_of(append(10, 0)) is None
    assert previous(append(10, 0, producer=8)).producer_of(append(12, 0)) is None


def test_directly_following_appends_are_known() -> None:
    runs = previous(append(10, 0), append(12, 50, producer=8))
    known = runs.producer_of(append(14, 2))
    assert known is not None
    assert (known.epoch, known.last_sequence) == (0, 1)


def test_a_gap_begins_a_new_run() -> None:
    runs = previous(append(10, 0), append(20, 50, producer=8))
    assert runs.producer_of(append(22, 2)) is None
    assert runs.producer_of(append(22, 52, producer=8)) is not None


def test_a_retried_batch_changes_nothing() -> None:
    runs = previous(append(10, 0), append(12, 2), append(10, 0))
    known = runs.producer_of(append(14, 4))
    assert known is not None
    assert known.last_sequence == 3


def test_a_truncated_log_begins_a_new_run() -> None:
    runs = previous(append(10, 0), append(12, 2), append(11, 8))
    assert runs.producer_of(append(14, 4)) is None
    assert runs[PLACE].end_offset == 13


def test_each_partition_has_its_own_runs() -> None:
    runs = previous(append(10, 0))
    assert (
        runs.producer_of(append(12, 2)._replace(partition_key=("10.0.0.3:9092", "orders", 0)))
        is None
    )


def test_number_of_remembered_batches_is_bounded() -> None:
    runs = previous(*(append(2 * at, 2 * at) for at in range(9)))
    known = runs.producer_of(append(18, 18))
    assert known is not None
    assert list(known.recent) == [(2 * at, 2 * at) for at in range(9 - RETAINED_BATCHES, 9)]


def test_a_new_epoch_forgets_earlier_batches() -> None:
    runs = previous(append(10, 4), append(12, 0, epoch=1))
    known = runs.producer_of(append(14, 2, epoch=1))
    assert known is not None
    assert list(known.recent) == [(0, 12)]


def test_sequences_wrap_to_zero() -> None:
    last = append(10, 2**31 - 1)
    assert last.last_sequence == 0
