"""Producer ids, epochs and sequences mapped between capture and target."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replay.mapping.producer_ids import ProducerMap
from replay.plan.sequence_gaps import SEQUENCES

IDS = st.integers(0, 2**63 - 1)
EPOCHS = st.integers(0, 2**15 - 1)


@given(st.lists(st.tuples(IDS, EPOCHS, IDS, EPOCHS), unique_by=(lambda t: t[:2], lambda t: t[2:])))
def test_producers_map_both_ways(known: list[tuple[int, int, int, int]]) -> None:
    producers = ProducerMap()
    for producer_id, epoch, live_id, live_epoch in known:
        producers.learn((producer_id, epoch), (live_id, live_epoch))
    for producer_id, epoch, live_id, live_epoch in known:
        assert producers.live(producer_id, epoch) == (live_id, live_epoch)
        assert producers.captured(live_id, live_epoch) == (producer_id, epoch)


def test_an_epoch_bumped_by_the_client_is_bumped() -> None:
    producers = ProducerMap()
    producers.learn((9, 3), (70, 0))
    assert producers.live(9, 5) == (70, 2)
    assert producers.live(9, None) == (70, 0)
    assert producers.captured_epoch(9, 2) == 5
    assert producers.captured_epoch(8, 2) == 2
    assert producers.live(8, 0) is None


def test_the_null_producer_id_is_not_mapped() -> None:
    producers = ProducerMap()
    producers.learn((-1, -1), (5, 0))
    producers.learn((5, 0), (-1, -1))
    assert producers.live(-1, -1) is None
    assert producers.live(5, 0) is None


@given(
    first=st.integers(0, 2**31 - 1),
    steps=st.lists(st.integers(0, 2**31 - 1), max_size=6),
)
def test_sequences_map_both_ways_across_the_wrap(first: int, steps: list[int]) -> None:
    producers = ProducerMap()
    assert producers.sequence((9, 0), "t", 0, first) == 0
    for step in steps:
        sequence = (first + step) % 2**31
        live = producers.sequence((9, 0), "t", 0, sequence)
        assert live == step
        assert producers.captured_sequence((9, 0), "t", 0, live) == sequence


def test_sequences_continue_where_one_target_epoch_stands_for_several() -> None:
    producers = ProducerMap()
    producers.learn((9, 0), (70, 0))
    for sequence, records in ((0, 3), (3, 2), (0, 3)):  # a retry of the first one
        live = producers.sequence((9, 0), "t", 0, sequence)
        producers.record_written((70, 0), "t", 0, live, records)
    producers.learn((9, 1), (70, 0))
    assert [producers.sequence((9, 1), "t", 0, each) for each in (0, 4)] == [5, 9]
    assert producers.captured_sequence((9, 1), "t", 0, 9) == 4
    assert producers.sequence((9, 1), "t", 1, 0) == 0
    producers.learn((9, 2), (70, 1))
    assert producers.sequence((9, 2), "t", 0, 0) == 0


def test_sequences_continue_across_the_wrap() -> None:
    producers = ProducerMap()
    producers.learn((9, 0), (70, 0))
    for sequence in (SEQUENCES // 2 - 2, SEQUENCES - 4):
        producers.record_written((70, 0), "t", 0, sequence, 1)
    producers.record_written((70, 0), "t", 0, SEQUENCES - 1, 2)
    assert producers.sequence((9, 0), "t", 0, 0) == 1


def test_each_epoch_and_partition_begins_with_0() -> None:
    producers = ProducerMap()
    for epoch, partition in ((0, 0), (0, 1), (1, 0)):
        assert producers.sequence((9, epoch), "t", partition, 40) == 0
    assert producers.sequence((9, 0), "t", 0, -1) == -1
