"""Keyed permutations are bijective, also on a subset of numbers."""

from __future__ import annotations

import pytest

from dissector.redaction.pseudonyms.permutation import Permutation

KEYED = Permutation(b"a key of the test")


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 36, 257])
def test_images_are_unique(bound: int) -> None:
    images = [KEYED.permute("x", number, bound) for number in range(bound)]
    assert sorted(images) == list(range(bound))


def test_valid_numbers_stay_valid() -> None:
    even = [
        KEYED.permute("x", number, 100, lambda each: each % 2 == 0) for number in range(0, 100, 2)
    ]
    assert sorted(even) == list(range(0, 100, 2))


def test_key_and_label_select_the_permutation() -> None:
    bound = 1 << 128
    images = {
        KEYED.permute("x", 5, bound),
        KEYED.permute("y", 5, bound),
        Permutation(b"another key of it").permute("x", 5, bound),
    }
    assert len(images) == 3
    assert Permutation(b"a key of the test").permute("x", 5, bound) in images


def test_a_digest_depends_on_all_its_data() -> None:
    assert KEYED.digest("x", b"a" * 1000, 8) != KEYED.digest("x", b"a" * 999 + b"b", 8)
