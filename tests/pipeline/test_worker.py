"""What is loaded is looked at once; what tasks make goes away as ever."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pipeline.worker import settle


class Knot:
    """Holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def process() -> Iterator[None]:
    """Begin as a process in which no task has run, and end likewise."""
    settle.cache_clear()
    gc.unfreeze()
    yield
    settle.cache_clear()
    gc.unfreeze()


def test_what_is_loaded_is_out_of_sight_and_garbage_is_not(process: None) -> None:
    before, made_before = weakref.ref(Knot()), len(gc.get_objects())
    settle()
    assert before() is None
    assert gc.get_freeze_count() > made_before // 2
    assert len(gc.get_objects()) < made_before // 2
    after = weakref.ref(Knot())
    gc.collect()
    assert after() is None


def test_once_is_enough(process: None) -> None:
    settle()
    kept = gc.get_freeze_count()
    more = [[number] for number in range(1000)]
    settle()
    assert len(more) == 1000
    assert gc.get_freeze_count() <= kept
