from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.reference.tcp.reorder_buffer import ReorderBuffer, SegmentBytes


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=30))
def test_each_byte_is_kept_from_its_first_segment(
    spans: list[tuple[int, int]],
) -> None:
    waiting = ReorderBuffer()
    want: dict[int, int] = {}
    for packet, (seq, length) in enumerate(spans):
        fresh = {at for at in range(seq, seq + length) if at not in want}
        added = waiting.add(SegmentBytes(seq, seq + length, length, packet, 0, 1000 * packet))
        assert {at for each in added for at in range(each.seq, each.end)} == fresh
        want.update(dict.fromkeys(fresh, packet))
    assert waiting.bytes == len(want)
    got: dict[int, int] = {}
    last = -1
    while len(waiting):
        assert waiting.front == min(set(want) - set(got))
        assert waiting.oldest is not None
        assert waiting.oldest.packet == min(want[at] for at in set(want) - set(got))
        run = waiting.pop_run()
        assert run[0].seq > last
        for before, after in itertools.pairwise(run):
            assert before.end == after.seq
        for each in run:
            seq, _ = spans[each.packet]
            assert each.start == 1000 * each.packet + each.seq - seq
            got.update(dict.fromkeys(range(each.seq, each.end), each.packet))
            each.released = True
        last = run[-1].end
    assert got == want
    assert waiting.bytes == 0
    assert waiting.oldest is None


def test_a_part_of_a_truncated_segment_has_its_captured_bytes() -> None:
    piece = SegmentBytes(100, 110, 4, 0, 0, 50)
    assert (piece.slice(102, 110).captured, piece.slice(102, 110).start) == (2, 52)
    assert piece.slice(105, 110).captured == 0
    assert piece.slice(100, 103).captured == 3
    piece.copied = b"abcd"
    assert piece.slice(101, 110).copied == b"bcd"
