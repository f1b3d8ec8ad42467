"""Sequences of producers: gaps, and batches that were sent again."""

from __future__ import annotations

import numpy as np

from replay.mapping.producer_ids import ProducerMap
from replay.plan.sequence_gaps import SEQUENCES, SequenceFinder, SequenceGaps

KEY = 9, 0, "t", 0


def test_consecutive_batches_leave_no_gap() -> None:
    holes = SequenceGaps(5, 5)
    assert not any(holes.record(*each) for each in ((5, 3), (8, 2), (8, 2), (10, 1)))
    assert not holes.ends


def test_a_retried_sequence_is_no_gap() -> None:
    holes = SequenceGaps(5, 5)
    assert [holes.record(*each) for each in ((5, 3), (5, 3), (9, 1), (5, 3))] == [
        *[False] * 2,
        True,
        False,
    ]
    assert (holes.ends, holes.missing) == ([4], [1])


def test_sequences_map_both_ways_across_gaps() -> None:
    holes = SequenceGaps(SEQUENCES - 2, SEQUENCES - 2)
    for sequence, records in ((SEQUENCES - 2, 1), (3, 2), (9, 1)):
        holes.record(sequence, records)
    assert [holes.missing_before(each) for each in (SEQUENCES - 2, 3, 4, 9)] == [0, 4, 4, 8]
    for sequence in (SEQUENCES - 2, 3, 4, 9):
        counted = (sequence - holes.missing_before(sequence)) % SEQUENCES
        assert holes.captured_sequence(counted) == sequence


def test_gaps_follow_the_order_of_requests() -> None:
    seen = SequenceFinder()
    log = "t", 0
    seen.record(0, [(log, True, (9, 0, 0, 2))])
    seen.record(1, [(log, True, (9, 0, 3, 2))])  # its answer came before that of the next
    seen.record(2, [(log, True, (9, 0, 2, 1))])
    assert seen.find([0, 2, 1], lambda _: None) == ({}, [])
    found, behind = seen.find([0, 1, 2], lambda _: None)
    assert list(found) == [KEY]
    assert behind == [1]


def test_refused_batches_are_ignored() -> None:
    seen = SequenceFinder()
    for number, sequence in enumerate((0, 5, 9)):
        seen.record(number, [(("t", 0), sequence != 5, (9, 0, sequence, 1))])
    found, behind = seen.find([0, 1, 2], lambda _: None)
    assert behind == [2]
    assert found[KEY].missing == [8]


def test_batches_sent_again_are_those_of_one_producer_and_log() -> None:
    seen = SequenceFinder()
    log, refused = ("t", 0), False
    batches = [
        [(log, refused, (9, 0, 0, 2)), (("t", 1), True, (9, 0, 0, 2))],
        [(log, True, (9, 0, 0, 2))],  # again
        [(log, True, (9, 1, 0, 2)), (log, True, (8, 0, 0, 2)), (log, True, (9, 0, 2, 2))],
        [(log, True, (9, 0, -1, 2)), (log, True, (-1, 0, 0, 2))],  # not idempotent
    ]
    for number, each in enumerate(batches):
        seen.record(number, each)
    steps = np.array([0, 1, 2, 3])
    assert seen.sent_again(steps, ()) == {1}
    assert seen.sent_again(steps[[1, 0, 2, 3]], ()) == {1}, "the later of both in order"
    assert seen.sent_again(steps, {0}) == set(), "the first was not sent"
    assert SequenceFinder().sent_again(steps, ()) == set()


def test_sent_sequences_have_no_gap() -> None:
    holes = SequenceGaps(0, 0)
    for sequence in (0, 3, 7):
        holes.record(sequence, 2)
    producers = ProducerMap()
    producers.learn((9, 0), (70, 0))
    producers.holes = {KEY: holes}
    ages = []
    for sequence, expected in ((0, 0), (3, 2), (4, 3), (7, 4), (3, 2)):
        assert producers.sequence((9, 0), "t", 0, sequence) == expected
        assert producers.captured_sequence((9, 0), "t", 0, expected) == sequence
        ages.append(producers.revision)
    assert len(set(ages)) == 4, "requests encoded ahead with another sequence offset are not used"
