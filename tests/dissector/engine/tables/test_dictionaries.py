from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from dissector.engine.tables import dictionaries
from dissector.engine.tables.dictionaries import MAX_DISTINCT, numbered_texts
from dissector.engine.tables.exchange_table import Exchanges
from dissector.kernel.arrays import Buffers
from tests.kernel_modes import both
from tests.reference.correlation.exchange_rows import to_exchange_table

mode = both(dictionaries)


def table_of(data: bytes, carry_over: bytes) -> Exchanges:
    arrays = (np.frombuffer(each, np.uint8) for each in (data, carry_over))
    return replace(to_exchange_table([]), **dict(zip(("data", "carry_over"), arrays, strict=True)))


def check(table: Exchanges, places: Sequence[tuple[int, int]], texts: Sequence[bytes]) -> None:
    start, length = np.array(places, np.int64).reshape(-1, 2).T
    codes, first = numbered_texts(table, start, length)
    found = list(dict.fromkeys(texts))
    assert codes.tolist() == [found.index(text) for text in texts]
    assert first.tolist() == [texts.index(text) for text in found]


def test_equal_texts_have_one_number_in_the_order_of_the_first() -> None:
    table = table_of(b"abcabd\x00", b"abc\xffab")
    places = [(0, 3), (3, 3), (7, 3), (0, 2), (11, 2), (0, 0), (7, 0), (6, 1)]
    check(table, places, [b"abc", b"abd", b"abc", b"ab", b"ab", b"", b"", b"\x00"])


def test_no_text() -> None:
    check(table_of(b"abc", b""), [], [])


def test_no_byte_beyond_the_frames_is_read() -> None:
    table = table_of(b"abc", b"abcd")
    places = [(1, 1 << 40), (2, -5), (-1, 3), (4, 99), (7, 1), (1 << 40, 1), (1, 2)]
    check(table, places, [b"bc", b"", b"", b"bcd", b"", b"", b"bc"])


@pytest.mark.parametrize("seed", range(5))
def test_random_texts(seed: int) -> None:
    random = Random(seed)
    parts = [bytes(random.choices(b"ab", k=20)) for _ in range(2)]
    places = [
        (random.choice((0, 20)) + random.randrange(15), random.randrange(6)) for _ in "x" * 60
    ]
    whole = b"".join(parts)
    check(table_of(*parts), places, [whole[at : at + size] for at, size in places])


def test_more_texts_than_a_table_has_places() -> None:
    texts = [b"%06d" % (number % (MAX_DISTINCT + 3)) for number in range(MAX_DISTINCT + 9)]
    places = [(6 * number, 6) for number in range(len(texts))]
    start, length = np.array(places, np.int64).T
    codes, first = numbered_texts(table_of(b"".join(texts), b""), start, length)
    assert codes.tolist() == [number % (MAX_DISTINCT + 3) for number in range(len(texts))]
    assert first.tolist() == list(range(MAX_DISTINCT + 3))


def test_texts_made_to_have_equal_hashes_have_others_in_another_process() -> None:
    """Else the rows of such a capture would cost as much as it has distinct texts, each."""
    texts = b"".join(b"%06d" % number for number in range(20_000))
    arrays: list[Any] = [texts, b"", b""]
    buffers = Buffers._make(arrays)
    slots: dict[int, list[int]] = {}
    for at in range(0, len(texts), 6):
        slots.setdefault(dictionaries.hash_of(buffers, at, 6, 1) & 255, []).append(at)
    equal = max(slots.values(), key=len)
    others = Counter(dictionaries.hash_of(buffers, at, 6, 2) & 255 for at in equal)
    assert len(equal) > 50
    assert max(others.values()) < 10
