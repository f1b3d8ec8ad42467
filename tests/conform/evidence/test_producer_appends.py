"""What a batch follows is known only where nothing lies between."""

from __future__ import annotations

from conform.evidence.producer_appends import RETAINED_BATCHES, Append, AppendHistory
from dissector.protocol.messages import Message
from dissector.protocol.records import RecordBatch

PLACE = ("10.0.0.2:9092", "orders", 0)
REQUEST = Message("request", b"", 0)


def append(offset: int, sequence: int, producer: int = 7, epoch: int = 0, error: int = 0) -> Append:
    batch = RecordBatch(
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        last_offset_delta=1,
        records_count=2,
    )
    return Append(REQUEST, "", PLACE, batch, error, offset)


def taken(*appends: Append) -> AppendHistory:
    runs = AppendHistory()
    for each in appends:
        runs.record(each)
    return runs


def test_nothing_is_known_of_the_first() -> None:
    assert AppendHistory().producer_of(append(10, 0)) is None
    assert taken(append(10, 0, producer=8)).producer_of(append(12, 0)) is None


def test_directly_following_appends_are_known() -> None:
    runs = taken(append(10, 0), append(12, 50, producer=8))
    known = runs.producer_of(append(14, 2))
    assert known is not None
    assert (known.epoch, known.last_sequence) == (0, 1)


def test_a_gap_begins_a_new_run() -> None:
    runs = taken(append(10, 0), append(20, 50, producer=8))
    assert runs.producer_of(append(22, 2)) is None
    assert runs.producer_of(append(22, 52, producer=8)) is not None


def test_a_batch_that_is_sent_again_changes_nothing() -> None:
    runs = taken(append(10, 0), append(12, 2), append(10, 0))
    known = runs.producer_of(append(14, 4))
    assert known is not None
    assert known.last_sequence == 3


def test_a_log_that_went_back_begins_a_new_run() -> None:
    runs = taken(append(10, 0), append(12, 2), append(11, 8))
    assert runs.producer_of(append(14, 4)) is None
    assert runs[PLACE].end_offset == 13


def test_other_places_have_other_runs() -> None:
    runs = taken(append(10, 0))
    assert (
        runs.producer_of(append(12, 2)._replace(partition_key=("10.0.0.3:9092", "orders", 0)))
        is None
    )


def test_few_batches_are_remembered() -> None:
    runs = taken(*(append(2 * at, 2 * at) for at in range(9)))
    known = runs.producer_of(append(18, 18))
    assert known is not None
    assert list(known.recent) == [(2 * at, 2 * at) for at in range(9 - RETAINED_BATCHES, 9)]


def test_a_new_epoch_forgets_the_batches_before() -> None:
    runs = taken(append(10, 4), append(12, 0, epoch=1))
    known = runs.producer_of(append(14, 2, epoch=1))
    assert known is not None
    assert list(known.recent) == [(0, 12)]


def test_sequences_go_on_at_zero() -> None:
    last = append(10, 2**31 - 1)
    assert last.last_sequence == 0
