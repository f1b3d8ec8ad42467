from __future__ import annotations

from collections import Counter

from tools.record.steady import damaged

PACKETS = [(number, b"") for number in range(10_000)]


def test_lost_packets_are_one_in_a_hundred() -> None:
    left = list(damaged(PACKETS, "lost"))
    assert 9_850 < len(left) < 9_950
    assert left == sorted(set(left))


def test_doubled_packets_follow_each_other() -> None:
    doubled = list(damaged(PACKETS, "doubled"))
    assert doubled[::2] == doubled[1::2] == PACKETS


def test_reordered_packets_are_swapped_with_neighbours() -> None:
    reordered = list(damaged(PACKETS, "reordered"))
    assert sorted(reordered) == PACKETS
    moves = Counter(number - at for at, (number, _) in enumerate(reordered))
    assert moves.keys() == {-1, 0, 1}
    assert 400 < moves[1] == moves[-1] < 600
