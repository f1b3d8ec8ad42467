from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.packets.ip_fragments import (
    MAX_AGE_NS,
    MAX_DATAGRAM_BYTES,
    MAX_INCOMPLETE,
    Datagram,
    FragmentReassembler,
)


def add(
    fragments: FragmentReassembler,
    offset: int,
    data: bytes,
    more: bool,
    *,
    key: int = 0,
    time_ns: int = 0,
) -> Datagram | None:
    return fragments.add(key, time_ns, offset, len(data), memoryview(data), more)


@given(st.data())
def test_any_order_with_repeats_and_overlaps_gives_the_first_bytes(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 100))
    spans = data.draw(
        st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, 40)), min_size=1, max_size=20)
    )
    fragments = FragmentReassembler()
    want: dict[int, int] = {}
    for number, (offset, length) in enumerate([*spans, (0, size)]):
        end = min(offset + length, size)
        whole = add(fragments, offset, bytes([number]) * (end - offset), end < size)
        for at in range(offset, end):
            want.setdefault(at, number)
        last_seen = any(o + n >= size for o, n in [*spans, (0, size)][: number + 1])
        if last_seen and len(want) == size:
            assert whole == Datagram(bytes(want[at] for at in range(size)), size)
            break
        assert whole is None
    assert fragments.incomplete == 0
    assert fragments.abandoned == 0


def test_datagrams_are_distinguished_by_key() -> None:
    fragments = FragmentReassembler()
    assert add(fragments, 0, b"a" * 8, True, key=1) is None
    assert add(fragments, 8, b"b", False, key=2) is None
    assert add(fragments, 8, b"c", False, key=1) == Datagram(b"a" * 8 + b"c", 9)
    assert fragments.incomplete == 1


def test_a_truncated_fragment_ends_the_present_bytes() -> None:
    fragments = FragmentReassembler()
    assert fragments.add(0, 0, 0, 16, memoryview(b"0123456789"), True) is None
    assert add(fragments, 16, b"end", False) == Datagram(b"0123456789", 19)


def test_bytes_beyond_the_end_or_64_kib_are_ignored() -> None:
    fragments = FragmentReassembler()
    assert add(fragments, 8, b"last", False) is None
    assert add(fragments, 16, b"beyond  ", True) is None
    assert add(fragments, 65528, bytes(8), True) is None
    assert add(fragments, 0, b"12345678", True) == Datagram(b"12345678last", 12)
    assert add(fragments, MAX_DATAGRAM_BYTES - 8, bytes(16), False) is None
    assert fragments.incomplete == 0


def test_incomplete_datagrams_expire_by_age_and_number() -> None:
    fragments = FragmentReassembler()
    for key in range(MAX_INCOMPLETE + 3):
        add(fragments, 0, bytes(8), True, key=key)
    assert (fragments.incomplete, fragments.abandoned) == (MAX_INCOMPLETE, 3)
    add(fragments, 0, bytes(8), True, key=-1, time_ns=MAX_AGE_NS + 1)
    assert (fragments.incomplete, fragments.abandoned) == (1, MAX_INCOMPLETE + 3)


def test_packets_of_incomplete_datagrams_are_known() -> None:
    fragments = FragmentReassembler()
    for packet, (key, offset, more) in enumerate([(1, 0, True), (2, 8, False), (1, 8, False)]):
        fragments.add(key, 0, offset, 8, memoryview(bytes(8)), more, 7 + packet)
    assert fragments.packets == [8]
    fragments.add(2, 0, 8, 8, memoryview(bytes(8)), False, 10)
    assert fragments.packets == [8, 10]
    fragments.add(2, 0, 0, 8, memoryview(bytes(8)), True, 11)
    assert fragments.packets == []
