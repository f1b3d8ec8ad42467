"""Streams that are forwarded, in pieces of any size."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from record.relay.frame_splitter import FrameSplitter, Treatment
from tests.default_frames import sized
from tests.example_counts import examples

HEAD_BYTES = 12
TREATMENTS = list(Treatment)


class Owner:
    """Forwards all, and notes what it sees; the fifth byte of a frame chooses its treatment."""

    waits_for_end = True

    def __init__(self) -> None:
        self.forwarded = bytearray()
        self.recorded = bytearray()
        self.finished: list[tuple[bytes, Treatment]] = []
        self.ends: list[int] = []
        self.has_frames = True

    def begin(self, head: bytes) -> Treatment:
        return TREATMENTS[head[4] % 3] if len(head) > 4 else Treatment.PASSES

    def forward(self, data: bytes) -> None:
        self.forwarded += data

    def forward_and_record(self, data: bytes) -> None:
        self.forwarded += data
        self.recorded += data

    def skip(self, size: int) -> None:
        self.recorded += bytes(size)

    def finish(self, frame: bytes, treatment: Treatment) -> None:
        self.finished.append((frame, treatment))
        self.recorded += frame
        if treatment is Treatment.HELD:
            self.forwarded += frame

    def end_frame(self) -> None:
        self.ends.append(len(self.forwarded))

    def is_no_kafka(self) -> None:
        self.has_frames = False


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted(cut % (len(data) + 1) for cut in cuts)
    return [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]


FRAMES = st.lists(st.binary(max_size=40).map(sized), max_size=6)
CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@given(frames=FRAMES, tail=st.binary(max_size=20), cuts=CUTS)
@settings(max_examples=examples(200))
def test_nothing_is_lost_or_changed_however_it_is_cut(
    frames: list[bytes], tail: bytes, cuts: list[int]
) -> None:
    data = b"".join(frames) + tail
    owner = Owner()
    splitter = FrameSplitter(owner, HEAD_BYTES, max_frame_bytes=1_000)
    for piece in in_pieces(data, cuts):
        splitter.feed(piece)
    splitter.stop()
    assert owner.forwarded == owner.recorded == data


@given(frames=FRAMES, cuts=CUTS)
@settings(max_examples=examples(100))
def test_frames_are_found_and_end_before_the_next_begins(
    frames: list[bytes], cuts: list[int]
) -> None:
    owner = Owner()
    splitter = FrameSplitter(owner, HEAD_BYTES)
    for piece in in_pieces(b"".join(frames), cuts):
        splitter.feed(piece)
    ends = [sum(map(len, frames[: number + 1])) for number in range(len(frames))]
    assert owner.ends == ends
    seen = [(frame, owner.begin(frame)) for frame in frames]
    assert owner.finished == [each for each in seen if each[1] is not Treatment.PASSES]
    assert splitter.is_between
    assert not splitter.held


def test_only_what_is_held_waits() -> None:
    owner = Owner()
    splitter = FrameSplitter(owner, HEAD_BYTES)
    held, watched = sized(bytes([2]) * 20), sized(bytes([1]) * 20)
    splitter.feed(watched[:15])
    assert owner.forwarded == watched[:15]
    assert not owner.recorded
    splitter.feed(watched[15:] + held[:20])
    assert owner.forwarded == watched
    assert splitter.held == 20
    splitter.release()
    assert owner.forwarded == watched + held[:20]
    splitter.feed(held[20:] + watched)
    assert owner.forwarded == watched + held + watched
    assert [each for each, _ in owner.finished] == [watched, watched]


def test_a_size_that_is_none_ends_the_search() -> None:
    owner = Owner()
    splitter = FrameSplitter(owner, HEAD_BYTES)
    splitter.feed(b"GET / HTTP/1.1\r\n")
    assert owner.forwarded == owner.recorded == b"GET / HTTP/1.1\r\n"
    assert not owner.has_frames
    splitter.feed(sized(bytes([2]) * 20)[:5])
    assert owner.forwarded.endswith(sized(bytes([2]) * 20)[:5])


@given(frames=FRAMES, cuts=CUTS, at=st.integers(0, 20))
@settings(max_examples=examples(100), deadline=None)
def test_what_is_kept_may_be_released_at_any_time(
    frames: list[bytes], cuts: list[int], at: int
) -> None:
    """Nothing is lost on the way, and a watched frame is a gap of its size."""
    data = b"".join(frames)
    owner = Owner()
    splitter = FrameSplitter(owner, HEAD_BYTES)
    for number, piece in enumerate(in_pieces(data, cuts)):
        splitter.feed(piece)
        if number == at:
            splitter.release()
            assert not splitter.held
    assert bytes(owner.forwarded) == data
    assert len(owner.recorded) == len(data)
